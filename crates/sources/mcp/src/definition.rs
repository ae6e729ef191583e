//! What people write about a server: the type of `tools/mcp/*.yaml`.

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

use crate::client::{Launch, MARK, Place, Site};
use crate::oauth::{AuthOptions, Authorizer, KnownClient, Scopes};
use crate::source::McpOptions;

/// Headers that belong to the protocol.
const FORBIDDEN: [&str; 8] =
    ["host", "connection", "content-length", "transfer-encoding", "content-type", "accept", "mcp-session-id", "mcp-protocol-version"];

/// An MCP server, as in `tools/mcp/*.yaml`: a program, or an address.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct McpDefinition {
    /// The name of the source.
    pub name: String,
    /// The program that is the server, and its arguments. One with a `/` is found from the project's folder.
    pub command: Option<Vec<String>>,
    /// The address of the server.
    pub url: Option<String>,
    /// Variables of the program's environment: `NAME` passes one through, `NAME=value` sets it.
    #[serde(default)]
    pub env: Vec<String>,
    /// The folder the program runs in, from the project's folder; that folder itself if left out.
    pub working_folder: Option<String>,
    /// Headers of every request to the address.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The key, sent as a bearer token unless a header is named.
    pub mcp_api_key: Option<Secret>,
    /// The header that carries the key as it is.
    pub mcp_api_key_header: Option<String>,
    /// How Helve logs in where the server asks for OAuth.
    #[serde(default)]
    pub oauth: OAuthFields,
    /// What the names of its tools begin with; the name of the source if left out, nothing if empty.
    pub prefix: Option<String>,
    /// Whether what the server says about its tools is believed: which of them only read, and which destroy. Tools of a server that is not
    /// trusted must be confirmed.
    #[serde(default)]
    pub trusted: bool,
    /// Only these tools, by the server's own names; patterns are allowed.
    #[serde(default)]
    pub include: Vec<Pattern>,
    /// Not these tools.
    #[serde(default)]
    pub exclude: Vec<Pattern>,
    /// What is different about single tools, by the server's own names.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolFields>,
    /// How calls run.
    #[serde(flatten)]
    pub rules: RulesFields,
}

/// What is different about one tool of a server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolFields {
    /// Another name.
    pub name: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Arguments that need not be given.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Whether a person is asked first: `auto`, `confirm` or `deny`.
    pub permission: Option<Permission>,
    /// How long one attempt may take, such as `30s`.
    pub timeout: Option<HumanDuration>,
}

/// How Helve logs in where a server asks for OAuth.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OAuthFields {
    /// A client that is known to whoever gives out tokens; left out, Helve registers itself.
    pub client_id: Option<String>,
    /// What only that client knows.
    pub client_secret: Option<Secret>,
    /// Who gives out tokens to that client.
    pub issuer: Option<String>,
    /// What the token is for; left out, what the server asks for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The port to which the browser comes back; any free one if left out.
    pub callback_port: Option<u16>,
}

impl McpDefinition {
    /// One that says nothing in particular.
    pub(crate) fn plain() -> Self {
        Self {
            name: String::new(),
            command: None,
            url: None,
            env: Vec::new(),
            working_folder: None,
            headers: BTreeMap::new(),
            mcp_api_key: None,
            mcp_api_key_header: None,
            oauth: OAuthFields::default(),
            prefix: None,
            trusted: false,
            include: Vec::new(),
            exclude: Vec::new(),
            tools: BTreeMap::new(),
            rules: RulesFields::default(),
        }
    }

    /// Everything in it that must never be shown.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        let keys = self.mcp_api_key.iter().chain(&self.oauth.client_secret).map(|key| key.secret().clone());
        let headers = self.headers.iter().filter(|(name, _)| is_secret_header(name)).flat_map(|(_, value)| {
            let token = value.split_once(' ').map(|(_, token)| token.to_owned());
            [Some(value.clone()), token].into_iter().flatten().map(SecretString::from)
        });
        keys.chain(headers).collect()
    }

    /// What the names of its tools begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }

    /// Whether a tool of this name could come from the server.
    #[must_use]
    pub fn may_bring(&self, name: &str) -> bool {
        let own = match self.prefix() {
            "" => Some(name),
            prefix => name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')),
        };
        own.is_some_and(|own| !own.is_empty() && (self.wants(own) || self.tools.values().any(|tool| tool.name.as_deref() == Some(own))))
    }

    /// What it runs or whom it reaches, for people.
    #[must_use]
    pub fn place(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => command.join(" "),
            (None, Some(url)) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
            (None, None) => String::new(),
        }
    }

    /// What it runs, if it is a program.
    #[must_use]
    pub fn line(&self) -> Option<CommandLine<'_>> {
        let words = self.command.as_deref()?;
        Some(CommandLine { words, env: &self.env, folder: self.working_folder.as_deref() })
    }

    /// Who it is: another program, or another address, is another server, whatever its name.
    #[must_use]
    pub fn identity(&self, project: &Path) -> Digest {
        let says = json!({"name": self.name, "command": self.command, "url": self.url, "project": project.to_string_lossy(),
            "working_folder": self.working_folder});
        Digest::of([json::canonical(&says).as_bytes()])
    }

    /// Whether the definition can be used. Nothing is started or sent.
    ///
    /// # Errors
    /// The field that is wrong, and what would be right.
    pub fn check(&self, project: &Path) -> Result<(), FieldError> {
        self.read_place(project, &McpOptions::default()).map(drop)
    }

    /// Whether a tool, by the server's own name, is wanted.
    pub(crate) fn wants(&self, tool: &str) -> bool {
        (self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(tool)))
            && !self.exclude.iter().any(|pattern| pattern.matches(tool))
    }

    /// Where the server is.
    pub(crate) fn read_place(&self, project: &Path, options: &McpOptions) -> Result<Place, FieldError> {
        if self.name.trim().is_empty() {
            return Err(FieldError::new("/name", "a server needs a name"));
        }
        match (&self.command, &self.url) {
            (Some(command), None) => self.read_command(command, project, &options.redactor).map(|launch| Place::Command(Arc::new(launch))),
            (None, Some(url)) => self.read_site(url, options).map(|site| Place::Url(Arc::new(site))),
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
            return Err(FieldError::new("/command", "a part of the command holds the character NUL"));
        }
        for (field, there) in [
            ("/headers", !self.headers.is_empty()),
            ("/mcp_api_key", self.mcp_api_key.is_some()),
            ("/mcp_api_key_header", self.mcp_api_key_header.is_some()),
        ] {
            if there {
                return Err(FieldError::new(field, "this is for servers with a `url`; give a program what it needs in `env`"));
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
                return Err(FieldError::new(field, "this is for servers with a `command`"));
            }
        }
        let wrong = |error: &dyn std::fmt::Display| {
            FieldError::new("/url", error.to_string()).hint("write an address such as `https://example.com/mcp`")
        };
        let url: Url = read_url(url).map_err(|error| wrong(&error))?;
        // Whoever wrote the file chose the address, so it may be anywhere.
        let headers = self.read_headers()?;
        let authorizer = (!headers.contains_key(header::AUTHORIZATION)).then(|| self.authorizer(&url, options)).transpose()?;
        let mut site = Site::new(&url, &headers, Reach::Any, &options.connections, authorizer).map_err(|error| wrong(&error))?;
        if options.browser.is_some() {
            site.slack = AuthOptions::default().patience;
        }
        Ok(site)
    }

    /// Forgets the login at the server.
    ///
    /// # Errors
    /// Where it cannot be forgotten.
    pub async fn logout(&self, options: &McpOptions) -> Result<(), String> {
        let Some(url) = self.url.as_deref().and_then(|url| read_url(url).ok()) else { return Ok(()) };
        self.authorizer(&url, options).map_err(|error| error.to_string())?.forget().await
    }

    /// Who logs in at the server.
    pub(crate) fn authorizer(&self, url: &Url, options: &McpOptions) -> Result<Authorizer, FieldError> {
        let client = match (&self.oauth.client_id, &self.oauth.issuer) {
            (None, None) => None,
            (Some(id), Some(issuer)) => {
                let secret = self.oauth.client_secret.as_ref().map(|secret| secret.secret().clone());
                Some(KnownClient { issuer: issuer.clone(), id: id.clone(), secret })
            }
            _ => return Err(FieldError::new("/oauth", "a client is known to one issuer: `client_id` and `issuer` belong together")),
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
        return Err(FieldError::new(path, format!("`{}` cannot be the name of a header", name.escape_debug())));
    };
    if FORBIDDEN.contains(&header.as_str()) {
        return Err(FieldError::new(path, format!("the header `{header}` is set by Helve itself")));
    }
    let mut read = HeaderValue::from_str(value.trim()).map_err(|_| FieldError::new(path, "this cannot be the value of a header"))?;
    read.set_sensitive(is_secret_header(name));
    Ok((header, read))
}
