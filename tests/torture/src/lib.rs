//! Kills processes at any moment while they use the store, and checks that nothing is lost and nothing is duplicated.
//!
//! A parent starts children on one store and kills them. Each child logs what the store acknowledged, and the
//! [`history`] of all of them is compared with what is in the store at the end.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]
#![allow(clippy::missing_panics_doc, reason = "the same")]
#![allow(clippy::print_stderr, reason = "what is skipped should say so")]

pub mod child;
pub mod crash;
pub mod crowd;
mod fault;
mod fixtures;
mod forward;
pub mod freeze;
pub mod history;
mod location;
mod log;
mod network;
pub mod outage;
pub mod parent;
mod process;
mod retrying;
pub mod server;
pub mod soak;
mod witness;

pub use fault::Fault;
pub use location::StoreLocation;
pub use log::{Log, Paths};
