//! Real programs of this machine as tools, well-behaved and not, through the public API.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod arguments;
mod definitions;
mod endings;
mod results;
mod stopping;
mod support;
mod surroundings;
