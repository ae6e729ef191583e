//! The server as clients see it: over HTTP in both eras, and over pipes.

#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that goes wrong should stop, and reads better with values in place"
)]

mod backend;
mod client;
mod door;
mod legacy;
mod listen;
mod modern;
mod stdio;
