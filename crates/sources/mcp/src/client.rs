//! The client's side: connections to servers, in both eras.

pub(crate) mod connection;
mod http;
mod http_sse;
mod launch;
pub(crate) mod peer;
mod stdio;
pub(crate) mod trouble;

pub(crate) use connection::{Connection, Hello, How, Place};
pub(crate) use http::Site;
pub(crate) use launch::{Launch, MARK};
pub use trouble::Trouble;
