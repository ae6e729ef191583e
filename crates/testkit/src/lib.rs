//! For tests of Helve and of programs that use it: fake tools, a scripted model provider, and an HTTP server that misbehaves, and a way to skip.

mod fake;
mod raw_server;
mod server;
mod skip;

pub use fake::{call, echo, fake, spec, spec_of, toolkit};
pub use raw_server::{RawRequest, RawServer, raw_response, raw_response_with, within};
pub use server::{Call, CallPieces, Failure, ModelServer, Reply, Request, Script, Turn, Wire};
pub use skip::skip;
