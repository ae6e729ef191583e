//! What people write about HTTP tools: the types of `tools/native/*.yaml` and of remote tool servers.

use std::collections::BTreeMap;

use helve_core::Pattern;
use helve_core::authored::{RulesFields, Secret, parameters_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One HTTP tool, as in `tools/native/*.yaml`. Texts with `{{ parameter }}` are templates.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct HttpDefinition {
    /// The name by which agents call it.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// The address. Parameters in its path are percent-encoded.
    pub api_url: String,
    /// The HTTP method.
    #[serde(default)]
    pub method: Method,
    /// How Helve proves who it is.
    pub auth_method: Option<Auth>,
    /// What arguments the tool takes.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub parameters: Option<Value>,
    /// The query of the address. An argument that was left out leaves out its entry.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Headers of the request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: text, or JSON with templates inside. A text that is only `{{ x }}` keeps the type of `x`.
    /// Left out, methods with a body send the arguments that are used nowhere else.
    pub body: Option<Value>,
    /// How the body is written.
    #[serde(default)]
    pub body_format: BodyFormat,
    /// What of the response is the result: a JSON pointer such as `/items`, or a template over the response.
    pub result: Option<String>,
    /// JSON Schema that results must fit.
    pub output: Option<Value>,
    /// How many bytes of a response are read; 1 MiB if left out.
    pub max_bytes: Option<u64>,
    /// Statuses after which an idempotent tool is tried again, besides 429, 502, 503 and 504.
    #[serde(default)]
    pub retry_on: Vec<u16>,
    /// How calls run.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    #[default]
    Get,
    /// Reads only the headers.
    Head,
    /// Creates, or does.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// As JSON.
    #[default]
    Json,
    /// As an HTML form.
    Form,
    /// As plain text.
    Text,
}

/// How Helve proves who it is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Auth {
    /// A key in a header or in the query.
    ApiKey {
        /// The header that carries it.
        header: Option<String>,
        /// The query parameter that carries it.
        query: Option<String>,
        /// The key.
        value: Secret,
    },
    /// A bearer token.
    Bearer {
        /// The token.
        token: Secret,
    },
    /// A user name and a password.
    Basic {
        /// The user.
        username: String,
        /// The password.
        password: Secret,
    },
    /// OAuth 2 client credentials.
    #[serde(rename = "oauth_client_credentials")]
    ClientCredentials {
        /// Where tokens are given out.
        token_url: String,
        /// Who asks.
        client_id: String,
        /// What only they know.
        client_secret: Secret,
        /// What the token is for.
        #[serde(default)]
        scopes: Vec<String>,
    },
}

/// Many HTTP tools at once, from an OpenAPI 3 document; also in `tools/native/*.yaml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct OpenApiDefinition {
    /// The document, YAML or JSON, beside this file.
    pub openapi: String,
    /// What the names of all tools begin with.
    pub prefix: Option<String>,
    /// Only operations with these names; patterns are allowed.
    #[serde(default)]
    pub include: Vec<Pattern>,
    /// No operations with these names.
    #[serde(default)]
    pub exclude: Vec<Pattern>,
    /// Only operations with one of these tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The address of the service, instead of the one in the document.
    pub api_url: Option<String>,
    /// How Helve proves who it is.
    pub auth_method: Option<Auth>,
    /// Headers of every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How many bytes of a response are read.
    pub max_bytes: Option<u64>,
    /// How calls run. Operations that only read are idempotent in any case.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// A server that lists tools at one address and runs them at `/execute`, as in `tools/mcp/*.yaml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct RemoteDefinition {
    /// The name of the source.
    pub name: String,
    /// The address: GET lists the tools, POST to `/execute` below it runs one.
    pub mcp_server_url: String,
    /// The key, sent in a header.
    pub mcp_api_key: Option<Secret>,
    /// The header that carries the key; `X-API-Key` if left out.
    pub mcp_api_key_header: Option<String>,
    /// What the names of its tools begin with; the name of the source if left out, nothing if empty.
    pub prefix: Option<String>,
    /// Only these tools; patterns are allowed.
    #[serde(default)]
    pub include: Vec<Pattern>,
    /// Not these tools.
    #[serde(default)]
    pub exclude: Vec<Pattern>,
    /// How calls run.
    #[serde(flatten)]
    pub rules: RulesFields,
}
