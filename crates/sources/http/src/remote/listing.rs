//! Fetches the tool list of a remote tool server. The list is untrusted, so invalid entries are skipped.

use std::collections::HashSet;
use std::sync::Arc;

use helve_core::authored::{FieldError, read_parameters};
use helve_core::json::{self, JsonLimits};
use helve_core::{Digest, DynTool, Permission, Redactor, Rules, ToolKind, ToolList, ToolSpec, printable};
use helve_fetch::{Fetch, FetchLimits, HeaderValue, Method, Reach, Request, Url, header};
use serde_json::Value;

use super::tool::{RemoteTool, Server};
use crate::address::read_base;
use crate::auth::Credentials;
use crate::definition::RemoteDefinition;
use crate::failure;

const KEY_HEADER: &str = "X-API-Key";
/// Maximum number of tools that are used of a server.
const MAX_TOOLS: usize = 1_000;
const LIST_LIMITS: JsonLimits = JsonLimits { bytes: 4 << 20, depth: 64, nodes: 200_000 };

/// A client for the tool list of a server.
pub(super) struct Listing {
    server: Arc<Server>,
    definition: RemoteDefinition,
    url: Url,
    rules: Rules,
}

impl Listing {
    pub(super) fn read(definition: &RemoteDefinition, fetch: &Fetch, redactor: &Redactor) -> Result<Self, FieldError> {
        let url = read_base(&definition.mcp_server_url, "/mcp_server_url")?;
        let credentials = match &definition.mcp_api_key {
            Some(key) => {
                let name = definition.mcp_api_key_header.as_deref().unwrap_or(KEY_HEADER);
                Credentials::key(name, key, "/mcp_api_key_header", "/mcp_api_key")?
            }
            None => Credentials::None,
        };
        // The operator of the server decides what its tools do, so they need approval by default.
        let rules = definition.rules.rules(Permission::Confirm);
        let server = Arc::new(Server::new(&url, credentials, rules.attempt_timeout(), fetch, redactor));
        Ok(Self { server, definition: definition.clone(), url, rules })
    }

    /// Fetches the tool list, and creates the tools.
    pub(super) async fn fetch(&self) -> Result<ToolList, String> {
        let mut request = Request::new(Method::GET, self.url.clone());
        request.reach = Reach::Any;
        request.limits = FetchLimits { bytes: LIST_LIMITS.bytes as u64, ..FetchLimits::default() };
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let response = self.server.send(request).await.map_err(|error| error.message().to_owned())?;
        let response = json::parse(&response.body, LIST_LIMITS).map_err(|error| {
            let excerpt = failure::excerpt(&response.body, self.server.redactor());
            format!("invalid tool list: {error}: {excerpt}")
        })?;
        let Some(entries) = response.get("tools").unwrap_or(&response).as_array() else {
            return Err("invalid tool list: `tools` is not a list".to_owned());
        };
        self.tools(entries).map_err(|error| error.to_string())
    }

    fn tools(&self, entries: &[Value]) -> Result<ToolList, helve_core::SpecError> {
        let source = &self.definition.name;
        if entries.len() > MAX_TOOLS {
            tracing::warn!(source, count = entries.len(), "the server lists too many tools; the rest is ignored");
        }
        let mut names = HashSet::new();
        let mut tools: Vec<Arc<dyn DynTool>> = Vec::new();
        for (index, entry) in entries.iter().take(MAX_TOOLS).enumerate() {
            match self.tool(entry, index) {
                Ok(tool) if names.insert(tool.spec.name().clone()) => tools.push(Arc::new(tool)),
                Ok(tool) => tracing::warn!(source, tool = %tool.spec.name(), "the server lists a tool twice; the second one is ignored"),
                Err(error) => {
                    let (path, why) = (printable::escape(&error.path), printable::escape(&error.message));
                    tracing::warn!(source, path, why, "invalid entry in the server's tool list");
                }
            }
        }
        let list: ToolList = tools.into_iter().collect();
        list.filtered(&self.definition.selection.include, &self.definition.selection.exclude).prefixed(self.definition.prefix())
    }

    fn tool(&self, entry: &Value, index: usize) -> Result<RemoteTool, FieldError> {
        let at = |field: &str| format!("/tools/{index}{field}");
        let text = |field: &str| entry.get(field).and_then(Value::as_str);
        let Some(name) = text("name") else { return Err(FieldError::new(at("/name"), "the tool has no name")) };
        if self.definition.prefix().len() + 1 + name.len() > ToolSpec::MAX_NAME {
            return Err(FieldError::new(at("/name"), "the tool name is too long"));
        }
        let field =
            ["parameters", "input_schema", "inputSchema"].into_iter().find(|field| entry.get(field).is_some_and(|value| !value.is_null()));
        let input = read_parameters(field.and_then(|field| entry.get(field)), &at(&format!("/{}", field.unwrap_or_default())))?;
        let spec = ToolSpec::new(name, text("description").unwrap_or_default(), input)?
            .with_rules(self.rules.clone())
            .with_origin(ToolKind::Mcp, format!("{} at {}", self.definition.name, self.url.origin().ascii_serialization()))
            .with_implementation(Digest::of([self.url.as_str().as_bytes(), name.as_bytes()]));
        Ok(RemoteTool { spec: spec.share(), name: name.into(), server: self.server.clone() })
    }
}
