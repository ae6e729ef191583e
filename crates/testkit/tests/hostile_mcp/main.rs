//! Helve's MCP client among servers that mean harm: what they do stays bounded, is reported, and costs nobody else anything.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]
#![cfg(target_os = "linux")]

mod answers;
mod greetings;
mod http;
mod lists;
mod memory;
mod processes;
mod site;
mod stage;
mod trust;
mod words;
