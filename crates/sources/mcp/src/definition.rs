//! The definition of an MCP server, as in the files `tools/mcp/*.yaml`.

mod import;
mod new_server;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use helve_core::authored::{FieldError, HumanDuration, RulesFields, Secret};
use helve_core::{Digest, Pattern, Permission, Redactor, json, secret};
use helve_fetch::{HeaderMap, HeaderName, HeaderValue, Reach, Url, header, read_url};
use helve_process::{CommandLine, Environment, Scripts};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::{Launch, MARK, McpOptions, ServerAddress, Site};
use crate::login::{AuthOptions, Authorizer, RegisteredClient, Scopes};

pub use import::{ImportedServer, import};
pub use new_server::NewServer;

/// HTTP headers that a definition must not set, because Helve sets them.
const FORBIDDEN: [&str; 8] =
    ["host", "connection", "content-length", "transfer-encoding", "content-type", "accept", "mcp-session-id", "mcp-protocol-version"];

/// The definition of an MCP server, as in `tools/mcp/*.yaml`: a program, or a URL.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct McpDefinition {
    /// The name of the server.
    pub name: String,
    /// The program of the server, and its arguments. A program with a `/` in its name is resolved relative to the project folder.
    pub command: Option<Vec<String>>,
    /// The URL of the server.
    pub url: Option<String>,
    /// Environment variables of the program: `NAME` passes a variable through, `NAME=value` sets it.
    #[serde(default)]
    pub env: Vec<String>,
    /// The working directory of the program, relative to the project folder; the default is the project folder.
    pub working_folder: Option<String>,
    /// HTTP headers of every request to the URL.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The API key, sent as a bearer token unless `mcp_api_key_header` is set.
    pub mcp_api_key: Option<Secret>,
    /// The HTTP header in which the API key is sent.
    pub mcp_api_key_header: Option<String>,
    /// Options of the login, if the server requires OAuth.
    #[serde(default)]
    pub oauth: OAuthFields,
    /// The prefix of the tool names; by default the name of the server, with an empty string none.
    pub prefix: Option<String>,
    /// Whether to trust the server's annotations of its tools, which say what is read-only or destructive. If not, every call to the
    /// server's tools needs approval by default.
    #[serde(default)]
    pub trusted: bool,
    /// The tools to use, as names on the server or patterns; all if empty.
    #[serde(default)]
    pub include: Vec<Pattern>,
    /// The tools to exclude, as names on the server or patterns.
    #[serde(default)]
    pub exclude: Vec<Pattern>,
    /// Overrides for single tools, by the tool's name on the server.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolFields>,
    /// The rules of calls to the server's tools.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// Overrides for one tool of a server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolFields {
    /// The name that replaces the tool's name on the server.
    pub name: Option<String>,
    /// The description that replaces the server's description.
    pub description: Option<String>,
    /// Default values of arguments, by name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The permission of calls to the tool: `auto`, `confirm` or `deny`.
    pub permission: Option<Permission>,
    /// The timeout of one attempt, such as `30s`.
    pub timeout: Option<HumanDuration>,
}

/// Options of the login at a server that requires OAuth.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OAuthFields {
    /// The id of a client that is registered with the issuer; by default Helve registers itself.
    pub client_id: Option<String>,
    /// The secret of the client in `client_id`.
    pub client_secret: Option<Secret>,
    /// The identifier of the issuer (authorization server) with which the client in `client_id` is registered.
    pub issuer: Option<String>,
    /// The scopes to request; by default those that the server requires.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The local port of the login callback; by default any free port.
    pub callback_port: Option<u16>,
}

impl McpDefinition {
    /// Returns the secrets in the definition, which must never be shown.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        let keys = self.mcp_api_key.iter().chain(&self.oauth.client_secret).map(|key| key.secret().clone());
        let headers = self.headers.iter().filter(|(name, _)| is_secret_header(name)).flat_map(|(_, value)| {
            let token = value.split_once(' ').map(|(_, token)| token.to_owned());
            [Some(value.clone()), token].into_iter().flatten().map(SecretString::from)
        });
        keys.chain(headers).collect()
    }

    /// Returns the prefix of the tool names.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }

    /// Returns whether a tool with this name, including the prefix, could come from the server.
    #[must_use]
    pub fn may_bring(&self, name: &str) -> bool {
        let own = match self.prefix() {
            "" => Some(name),
            prefix => name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')),
        };
        own.is_some_and(|own| !own.is_empty() && (self.wants(own) || self.tools.values().any(|tool| tool.name.as_deref() == Some(own))))
    }

    /// Returns the command that starts the server, or the server's URL without its query, for people.
    #[must_use]
    pub fn place(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => command.join(" "),
            (None, Some(url)) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
            (None, None) => String::new(),
        }
    }

    /// Returns the command that starts the server, or `None` if the server has a URL.
    #[must_use]
    pub fn command_line(&self) -> Option<CommandLine<'_>> {
        let words = self.command.as_deref()?;
        Some(CommandLine { words, env: &self.env, folder: self.working_folder.as_deref() })
    }

    /// Returns the digest that identifies the server. A server with another name, program, URL or project has another digest.
    #[must_use]
    pub fn identity(&self, project: &Path) -> Digest {
        let says = json!({"name": self.name, "command": self.command, "url": self.url, "project": project.to_string_lossy(),
            "working_folder": self.working_folder});
        Digest::of([json::canonical(&says).as_bytes()])
    }

    /// Checks whether the definition is valid. Starts no program and sends no request.
    ///
    /// # Errors
    /// Returns an error with the invalid field and how to correct it.
    pub fn check(&self, project: &Path) -> Result<(), FieldError> {
        self.read_address(project, &McpOptions::default()).map(drop)
    }

    /// Returns whether the definition selects the tool with this name on the server.
    pub(crate) fn wants(&self, tool: &str) -> bool {
        (self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(tool)))
            && !self.exclude.iter().any(|pattern| pattern.matches(tool))
    }

    /// Validates the definition, and returns the address of the server.
    pub(crate) fn read_address(&self, project: &Path, options: &McpOptions) -> Result<ServerAddress, FieldError> {
        if self.name.trim().is_empty() {
            return Err(FieldError::new("/name", "the server has no name"));
        }
        match (&self.command, &self.url) {
            (Some(command), None) => {
                self.read_command(command, project, &options.redactor).map(|launch| ServerAddress::Command(Arc::new(launch)))
            }
            (None, Some(url)) => self.read_site(url, options).map(|site| ServerAddress::Url(Arc::new(site))),
            (Some(_), Some(_)) => Err(FieldError::new("/url", "a server has a `command` or a `url`, not both")),
            (None, None) => {
                let hint = "write `command: [\"program\", \"argument\"]`, or `url: https://…`";
                Err(FieldError::new("", "a server needs a `command` or a `url`").hint(hint))
            }
        }
    }

    fn read_command(&self, command: &[String], project: &Path, redactor: &Redactor) -> Result<Launch, FieldError> {
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(FieldError::new("/command", "a command needs a program").hint("write `command: [\"program\", \"argument\"]`"));
        }
        if command.iter().any(|part| part.contains('\0')) {
            return Err(FieldError::new("/command", "the command contains a NUL character"));
        }
        for (field, there) in [
            ("/headers", !self.headers.is_empty()),
            ("/mcp_api_key", self.mcp_api_key.is_some()),
            ("/mcp_api_key_header", self.mcp_api_key_header.is_some()),
        ] {
            if there {
                return Err(FieldError::new(field, "this field is only for servers with a `url`; use `env` for a program"));
            }
        }
        let line = CommandLine { words: command, env: &self.env, folder: self.working_folder.as_deref() };
        let (project, folder) = line.folders(project)?;
        let environment = Environment::read(&self.env, &[MARK], redactor)?;
        let scripts = Scripts::load(&line, &project);
        Ok(Launch { command: command.to_vec(), environment, project, folder, scripts, redactor: redactor.clone() })
    }

    fn read_site(&self, url: &str, options: &McpOptions) -> Result<Site, FieldError> {
        for (field, there) in [("/env", !self.env.is_empty()), ("/working_folder", self.working_folder.is_some())] {
            if there {
                return Err(FieldError::new(field, "this field is only for servers with a `command`"));
            }
        }
        let wrong = |error: &dyn std::fmt::Display| {
            FieldError::new("/url", error.to_string()).hint("write a URL such as `https://example.com/mcp`")
        };
        let url: Url = read_url(url).map_err(|error| wrong(&error))?;
        // The author of the file chose the URL, so every address is allowed.
        let headers = self.read_headers()?;
        let authorizer = (!headers.contains_key(header::AUTHORIZATION)).then(|| self.authorizer(&url, options)).transpose()?;
        let mut site = Site::new(&url, &headers, Reach::Any, &options.connections, authorizer).map_err(|error| wrong(&error))?;
        if options.browser.is_some() {
            site.slack = AuthOptions::default().patience;
        }
        Ok(site)
    }

    /// Removes the stored login of the server.
    ///
    /// # Errors
    /// Returns an error if the store cannot remove the login.
    pub async fn logout(&self, options: &McpOptions) -> Result<(), String> {
        let Some(url) = self.url.as_deref().and_then(|url| read_url(url).ok()) else { return Ok(()) };
        self.authorizer(&url, options).map_err(|error| error.to_string())?.forget().await
    }

    /// Creates the authorizer that handles logins at the server.
    pub(crate) fn authorizer(&self, url: &Url, options: &McpOptions) -> Result<Authorizer, FieldError> {
        let client = match (&self.oauth.client_id, &self.oauth.issuer) {
            (None, None) => None,
            (Some(id), Some(issuer)) => {
                let secret = self.oauth.client_secret.as_ref().map(|secret| secret.secret().clone());
                Some(RegisteredClient { issuer: issuer.clone(), id: id.clone(), secret })
            }
            _ => return Err(FieldError::new("/oauth", "`client_id` and `issuer` must be set together")),
        };
        let auth = AuthOptions {
            client,
            client_document: options.client_document.clone(),
            scopes: Scopes::read(&self.oauth.scopes.join(" ")),
            callback_port: self.oauth.callback_port.unwrap_or_default(),
            browser: options.browser.clone(),
            store: options.logins.clone(),
            ..AuthOptions::default()
        };
        Ok(Authorizer::new(url, options.fetch.clone(), options.redactor.clone(), auth))
    }

    fn read_headers(&self) -> Result<HeaderMap, FieldError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let (name, value) = read_header(name, value, &format!("/headers/{name}"))?;
            headers.insert(name, value);
        }
        if let Some(key) = &self.mcp_api_key {
            let (name, value) = match &self.mcp_api_key_header {
                Some(name) => read_header(name, key.expose(), "/mcp_api_key_header")?,
                None => read_header(header::AUTHORIZATION.as_str(), &format!("Bearer {}", key.expose()), "/mcp_api_key")?,
            };
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "authorization" || name == "cookie" || secret::is_secret_variable(&name.replace('-', "_").to_ascii_uppercase())
}

fn read_header(name: &str, value: &str, path: &str) -> Result<(HeaderName, HeaderValue), FieldError> {
    let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err(FieldError::new(path, format!("`{}` is not a valid header name", name.escape_debug())));
    };
    if FORBIDDEN.contains(&header.as_str()) {
        return Err(FieldError::new(path, format!("the header `{header}` is set by Helve")));
    }
    let mut read = HeaderValue::from_str(value.trim()).map_err(|_| FieldError::new(path, "invalid header value"))?;
    read.set_sensitive(is_secret_header(name));
    Ok((header, read))
}
