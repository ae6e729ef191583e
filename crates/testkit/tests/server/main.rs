//! The scripted model server, seen by a client that reads bytes.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod client;
mod life;
mod requests;
mod streams;
mod trouble;
mod whole;
