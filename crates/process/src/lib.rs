//! Processes that Helve starts, and of which nothing is left when they are over.

mod group;
mod sweep;

pub use group::Group;
