//! What tests of Helve, and of programs that use it, are made of: fake tools, a server that plays a model's provider, and a way to skip.

mod fake;
mod server;
mod skip;

pub use fake::{call, echo, fake, spec, spec_of, toolkit};
pub use server::{Call, CallPieces, Failure, ModelServer, Reply, Request, Script, Turn, Wire};
pub use skip::skip;
