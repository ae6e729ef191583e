//! `helve run` through the binary, against a server that plays its model by a script: all wires, all ways to carry calls, and models
//! that behave badly.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod agents;
mod carried;
#[path = "../folder.rs"]
mod folder;
mod record;
mod refusals;
mod scene;
mod tape;
mod trouble;
mod wires;
