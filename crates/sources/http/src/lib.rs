//! HTTP APIs as tools: defined in a file, imported from OpenAPI, or listed by a remote tool server.

mod address;
mod auth;
mod definition;
mod failure;
mod form;
mod oauth;
mod openapi;
mod plan;
mod remote;
mod response;
mod shape;
mod template;
mod tool;

pub use definition::{Auth, BodyFormat, HttpDefinition, Method, OpenApiDefinition, RemoteDefinition};
pub use openapi::{ImportNote, OpenApiImport, SkippedOperation, import};
pub use remote::RemoteSource;
