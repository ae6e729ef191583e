//! MCP with the servers and clients of others, through the binary. They are in the folder that `HELVE_TEST_MCP` names, where
//! `scripts/mcp-peers` installs them; tests that need them are skipped by name where it is not set.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod asking;
mod client;
mod clients;
mod conformance;
mod dead;
#[path = "../folder.rs"]
mod folder;
mod gateway;
mod importing;
mod login;
mod over_http;
mod peers;
mod pins;
mod rules;
mod running;
mod scene;
mod servers;
mod tasks;
