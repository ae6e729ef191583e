//! The types of `tools/native/*.yaml`, and of `tools/mcp/*.yaml` for remote tool servers. Their comments are the descriptions in the
//! JSON Schemas.

use std::collections::BTreeMap;

use helve_core::authored::{RulesFields, Secret, SelectionFields, parameters_schema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A tool that sends an HTTP request, defined in `tools/native/*.yaml`. Strings that contain `{{ parameter }}` are templates.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct HttpDefinition {
    /// Name of the tool.
    pub name: String,
    /// Display name of the tool.
    pub title: Option<String>,
    /// Description for the model.
    pub description: String,
    /// URL of the request. Parameters in the path and the query are percent-encoded.
    pub api_url: String,
    /// HTTP method of the request.
    #[serde(default)]
    pub method: Method,
    /// How requests are authenticated.
    pub auth_method: Option<Auth>,
    /// Parameters of the tool: a list, or a JSON Schema of an object.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub parameters: Option<Value>,
    /// Query parameters. An entry is left out if the call omits its argument.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Request headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of the request: text, or JSON that may contain templates. A string that is exactly `{{ x }}` keeps the type of `x`.
    /// If omitted, POST, PUT and PATCH requests send the arguments that no other template uses.
    pub body: Option<Value>,
    /// Format of the request body.
    #[serde(default)]
    pub body_format: BodyFormat,
    /// Which part of the response is the result: a JSON pointer such as `/items`, or a template. The whole response if omitted.
    pub result: Option<String>,
    /// JSON Schema of the results.
    pub output: Option<Value>,
    /// Maximum size of a response in bytes; 1 MiB if omitted.
    pub max_bytes: Option<u64>,
    /// Status codes after which a call to an idempotent tool is retried, in addition to 429, 502, 503 and 504.
    #[serde(default)]
    pub retry_on: Vec<u16>,
    /// Rules of the tool, such as permission and timeout.
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

/// Format of a request body.
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

/// How requests are authenticated.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Auth {
    /// An API key in a header or in the query.
    ApiKey {
        /// Name of the header.
        header: Option<String>,
        /// Name of the query parameter.
        query: Option<String>,
        /// The API key.
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

/// An import of HTTP tools from an OpenAPI 3 document, defined in `tools/native/*.yaml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct OpenApiDefinition {
    /// Path of the OpenAPI document (YAML or JSON), relative to this file.
    pub openapi: String,
    /// Which operations to import, and under which names.
    #[serde(flatten)]
    pub selection: SelectionFields,
    /// Tags of the operations to import. All operations if empty.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Base URL of the service. Overrides the URL in the document.
    pub api_url: Option<String>,
    /// How requests are authenticated.
    pub auth_method: Option<Auth>,
    /// Headers that every request sends.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Maximum size of a response in bytes; 1 MiB if omitted.
    pub max_bytes: Option<u64>,
    /// Rules of the tools, such as permission and timeout. GET and HEAD operations are always idempotent.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// A remote tool server, defined in `tools/mcp/*.yaml`. The server lists its tools at one URL, and runs them at `/execute` below that URL.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct RemoteDefinition {
    /// Name of the server.
    pub name: String,
    /// URL of the server. GET to this URL lists the tools; POST to `/execute` below it runs a tool.
    pub mcp_server_url: String,
    /// API key that is sent in a header.
    pub mcp_api_key: Option<Secret>,
    /// Name of the header for the API key; `X-API-Key` if omitted.
    pub mcp_api_key_header: Option<String>,
    /// Which tools to offer, and under which names.
    #[serde(flatten)]
    pub selection: SelectionFields,
    /// Rules of the tool, such as permission and timeout.
    #[serde(flatten)]
    pub rules: RulesFields,
}
