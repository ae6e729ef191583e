//! The contents of `tools/native/*.yaml`, and of `tools/mcp/*.yaml` for remote tool servers.

use std::collections::BTreeMap;

use helve_core::authored::{RulesFields, Secret, SelectionFields, parameters_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// An HTTP tool, as in `tools/native/*.yaml`. Strings with `{{ parameter }}` are templates.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct HttpDefinition {
    /// Name of the tool.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// Description for the model.
    pub description: String,
    /// The URL. Parameters in its path and query are percent-encoded.
    pub api_url: String,
    /// The HTTP method.
    #[serde(default)]
    pub method: Method,
    /// Authentication.
    pub auth_method: Option<Auth>,
    /// Parameters of the tool.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub parameters: Option<Value>,
    /// Query parameters. The entry of an omitted argument is omitted.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Request headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: text, or JSON with templates in it. A string that is exactly `{{ x }}` keeps the type of `x`.
    /// If omitted, POST, PUT and PATCH send the arguments that are used nowhere else.
    pub body: Option<Value>,
    /// Format of the body.
    #[serde(default)]
    pub body_format: BodyFormat,
    /// The part of the response that is the result: a JSON pointer such as `/items`, or a template. The whole response if omitted.
    pub result: Option<String>,
    /// JSON Schema of results.
    pub output: Option<Value>,
    /// Maximum size of a response in bytes; 1 MiB if omitted.
    pub max_bytes: Option<u64>,
    /// Status codes that are retried if the tool is idempotent, in addition to 429, 502, 503 and 504.
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
    /// GET.
    #[default]
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

/// Format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// JSON.
    #[default]
    Json,
    /// URL-encoded form.
    Form,
    /// Plain text.
    Text,
}

/// Authentication.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Auth {
    /// An API key in a header or in the query.
    ApiKey {
        /// Name of the header.
        header: Option<String>,
        /// Name of the query parameter.
        query: Option<String>,
        /// The key.
        value: Secret,
    },
    /// A bearer token.
    Bearer {
        /// The token.
        token: Secret,
    },
    /// HTTP Basic authentication.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// OAuth 2 client credentials grant.
    #[serde(rename = "oauth_client_credentials")]
    ClientCredentials {
        /// URL of the token endpoint.
        token_url: String,
        /// The client id.
        client_id: String,
        /// The client secret.
        client_secret: Secret,
        /// Scopes to request.
        #[serde(default)]
        scopes: Vec<String>,
    },
}

/// HTTP tools imported from an OpenAPI 3 document, as in `tools/native/*.yaml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct OpenApiDefinition {
    /// Path of the document, YAML or JSON, relative to this file.
    pub openapi: String,
    /// Which operations to import, and under which names.
    #[serde(flatten)]
    pub selection: SelectionFields,
    /// Only operations with one of these tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Base URL of the service; overrides the one in the document.
    pub api_url: Option<String>,
    /// Authentication.
    pub auth_method: Option<Auth>,
    /// Headers of every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Maximum size of a response in bytes; 1 MiB if omitted.
    pub max_bytes: Option<u64>,
    /// How calls run. GET and HEAD operations are always idempotent.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// A remote tool server, as in `tools/mcp/*.yaml`: it lists its tools at one URL and runs them at `/execute` below it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct RemoteDefinition {
    /// Name of the server.
    pub name: String,
    /// URL of the server: GET lists the tools, POST to `/execute` below it runs one.
    pub mcp_server_url: String,
    /// API key, sent in a header.
    pub mcp_api_key: Option<Secret>,
    /// Header of the API key; `X-API-Key` if omitted.
    pub mcp_api_key_header: Option<String>,
    /// Which tools to offer, and under which names.
    #[serde(flatten)]
    pub selection: SelectionFields,
    /// How calls run.
    #[serde(flatten)]
    pub rules: RulesFields,
}
