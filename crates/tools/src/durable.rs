//! Durable calls: the store as one process uses it, calls that wait for a person, and workers for the queue.

mod approved;
mod heartbeat;
mod lease;
mod store_handle;
mod worker;

pub use approved::ApprovedCall;
pub use lease::LeaseGuard;
pub use store_handle::{StoreConflict, StoreHandle};
pub use worker::Worker;
