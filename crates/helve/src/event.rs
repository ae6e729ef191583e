//! What happens in a run, as it happens.

pub use helve_core::{EndOfRun, Event, EventData, Observer, RunError};
