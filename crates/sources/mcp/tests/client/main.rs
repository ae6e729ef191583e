//! The client's side, with Helve's own server as the other: sources that live, calls that end, questions that cross the eras.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod calls;
mod crossing;
mod live;
mod upstream;
