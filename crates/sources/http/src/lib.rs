//! HTTP APIs as tools: described in a file, imported from OpenAPI, or listed by a server of the older contract.

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
pub use openapi::{Imported, Note, Skipped, import};
pub use remote::RemoteSource;
