//! What tests of Helve, and of programs that use it, are made of: fake tools, and a server that plays a model's provider.

mod fake;
mod server;

pub use fake::{call, echo, fake, spec, spec_of, toolkit};
pub use server::{Call, CallPieces, Failure, ModelServer, Reply, Request, Script, Turn, Wire};
