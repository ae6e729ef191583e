//! A builder for servers that a program connects itself, without a file.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use helve_core::authored::{FieldError, HumanDuration, Secret};
use helve_core::{Permission, Redactor, SourceState, ToolSource};

use super::options::McpOptions;
use super::source::McpSource;
use crate::definition::McpDefinition;

/// An MCP server whose tools a program uses.
///
/// ```no_run
/// # async fn example() -> Result<(), helve_mcp::ConnectError> {
/// use helve_mcp::Mcp;
///
/// let time = Mcp::command("time", ["mcp-server-time", "--local-timezone", "UTC"]).trusted().connect().await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is connected before `connect`"]
#[derive(Clone)]
pub struct Mcp {
    definition: McpDefinition,
    folder: PathBuf,
    options: McpOptions,
}

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The definition has a mistake.
    #[error("the MCP server `{server}` cannot be used: {}", .error.message)]
    Definition {
        /// Its name.
        server: String,
        /// The mistake, and the field it is in.
        error: FieldError,
    },
    /// The server cannot be reached, or does not follow the protocol.
    #[error("the MCP server `{server}` cannot be connected: {reason}")]
    Failed {
        /// Its name.
        server: String,
        /// The reason.
        reason: String,
    },
}

impl fmt::Debug for Mcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and variables may be secrets.
        f.debug_struct("Mcp").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

impl Mcp {
    fn new(definition: McpDefinition) -> Self {
        Self { definition, folder: PathBuf::from("."), options: McpOptions::default() }
    }

    /// A program that is a server, with its arguments. A path with a `/` is resolved from the current folder.
    pub fn command(name: impl Into<String>, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let command = Some(command.into_iter().map(Into::into).collect());
        Self::new(McpDefinition { name: name.into(), command, ..McpDefinition::default() })
    }

    /// A server at a URL.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(McpDefinition { name: name.into(), url: Some(url.into()), ..McpDefinition::default() })
    }

    /// A server with a definition, as from a file.
    pub fn from_definition(definition: McpDefinition) -> Self {
        Self::new(definition)
    }

    /// Trusts the server's annotations of its tools. Otherwise each of its calls must be confirmed.
    pub fn trusted(mut self) -> Self {
        self.definition.trusted = true;
        self
    }

    /// Sets the prefix of its tools' names. The default is its name; an empty prefix adds nothing.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.definition.prefix = Some(prefix.into());
        self
    }

    /// Sets a variable of the program's environment, which is almost empty otherwise.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.definition.env.push(format!("{name}={value}"));
        self
    }

    /// Sends a header with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.definition.headers.insert(name.into(), value.into());
        self
    }

    /// Sends a key as a bearer token.
    pub fn bearer(mut self, key: impl Into<String>) -> Self {
        self.definition.mcp_api_key = Some(Secret::from(key.into()));
        self
    }

    /// Sets whether calls run at once, after an approval, or never.
    pub fn permission(mut self, permission: Permission) -> Self {
        self.definition.rules.permission = Some(permission);
        self
    }

    /// Sets the timeout of one call.
    pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
        self.definition.rules.timeout = Some(HumanDuration(timeout));
        self
    }

    /// Sets the folder in which the program is found and runs.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets the redactor that hides its secrets. [`Helve`](https://docs.rs/helve)'s own redactor knows those of the environment.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.options.redactor = redactor;
        self
    }

    /// Sets what connections are made with: logins, pins, HTTP.
    pub fn options(mut self, options: McpOptions) -> Self {
        self.options = options;
        self
    }

    /// Connects, and waits until the server has listed its tools. Afterwards it reconnects whenever the connection is lost.
    ///
    /// # Errors
    /// If the server cannot be used: the program is missing, there is no server at the URL, or a setting is invalid.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(self) -> Result<Arc<McpSource>, ConnectError> {
        let server = self.definition.name.clone();
        let source = McpSource::connect(&self.definition, &self.folder, &self.options)
            .map_err(|error| ConnectError::Definition { server: server.clone(), error })?;
        let mut state = source.tools();
        let settled = state.wait_for(|state| !matches!(state, SourceState::Connecting)).await;
        let failed = match settled.as_deref() {
            Ok(SourceState::Failed(reason)) => Some(reason.to_string()),
            Ok(_) => None,
            Err(_) => Some("connection closed".to_owned()),
        };
        match failed {
            Some(reason) => Err(ConnectError::Failed { server, reason }),
            None => Ok(source),
        }
    }
}
