//! For tests of agents: a model that follows a script, and remembers what it was asked.

pub use helve_agent::ScriptedModel;
