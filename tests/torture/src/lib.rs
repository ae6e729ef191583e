//! Kills processes that use the record at any moment, and checks that nothing was lost and nothing is there twice.
//!
//! A parent starts children on one record and kills them. What a child was told by the record it writes down, and the
//! [`history`] of all of them is compared with what is in the record at the end.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]
#![allow(clippy::missing_panics_doc, reason = "the same")]
#![allow(clippy::print_stderr, reason = "what is skipped should say so")]

pub mod child;
pub mod crash;
pub mod crowd;
mod fault;
mod forward;
pub mod freeze;
mod given;
pub mod history;
mod log;
mod network;
pub mod outage;
pub mod parent;
mod patient;
mod place;
mod process;
pub mod server;
pub mod soak;
mod witness;

pub use fault::Fault;
pub use log::{Log, Paths};
pub use place::Place;
