//! HTTP APIs as tools: described in a file, imported from OpenAPI, or listed by a server of the older contract.

mod definition;
mod template;

pub use definition::{Auth, BodyFormat, HttpDefinition, Method, OpenApiDefinition, RemoteDefinition, Secret};
