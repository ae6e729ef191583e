//! The Model Context Protocol: servers whose tools Helve uses, and Helve's tools as a server. Both eras of it, in both directions.

mod caller;
pub mod oauth;
pub mod serve;

pub use caller::{BackChannel, Downstream};
