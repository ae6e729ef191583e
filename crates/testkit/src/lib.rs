//! What tests of Helve, and of programs that use it, are made of.

mod fake;

pub use fake::{call, echo, fake, spec, spec_of, toolkit};
