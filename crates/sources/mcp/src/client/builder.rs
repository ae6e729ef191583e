//! A builder for connections to servers that are defined in Rust code instead of a file.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use helve_core::authored::{FieldError, HumanDuration, Secret};
use helve_core::{Permission, Redactor, SourceState, ToolSource};

use super::options::McpOptions;
use super::source::McpSource;
use crate::definition::McpDefinition;

/// Builder for a connection to an MCP server.
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

/// Why a server cannot be connected or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The definition of the server is invalid.
    #[error("the MCP server `{server}` cannot be used: {}", .error.message)]
    Definition {
        /// The name of the server.
        server: String,
        /// What is wrong, and in which field of the definition.
        error: FieldError,
    },
    /// The server cannot be reached, or does not follow the protocol.
    #[error("cannot connect to the MCP server `{server}`: {reason}")]
    Failed {
        /// The name of the server.
        server: String,
        /// Why the connection failed.
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

    /// Creates a builder for a server that is a program on this machine. `command` is the program and its arguments. A program with a `/`
    /// in its name is resolved relative to the current folder, or to [`folder`](Self::folder()).
    pub fn command(name: impl Into<String>, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let command = Some(command.into_iter().map(Into::into).collect());
        Self::new(McpDefinition { name: name.into(), command, ..McpDefinition::default() })
    }

    /// Creates a builder for a server at a URL.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(McpDefinition { name: name.into(), url: Some(url.into()), ..McpDefinition::default() })
    }

    /// Creates a builder for a server from a definition, for example one that was read from a file.
    pub fn from_definition(definition: McpDefinition) -> Self {
        Self::new(definition)
    }

    /// Trusts the server's annotations of its tools. Without this, every call to the server's tools needs approval by default.
    pub fn trusted(mut self) -> Self {
        self.definition.trusted = true;
        self
    }

    /// Sets the prefix of the tool names. The default is the name of the server; with an empty string, the names have no prefix.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.definition.prefix = Some(prefix.into());
        self
    }

    /// Sets an environment variable of the program. By default the program gets only a few harmless variables, such as `PATH` and `HOME`.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.definition.env.push(format!("{name}={value}"));
        self
    }

    /// Adds an HTTP header to every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.definition.headers.insert(name.into(), value.into());
        self
    }

    /// Sends an API key as a bearer token with every request.
    pub fn bearer(mut self, key: impl Into<String>) -> Self {
        self.definition.mcp_api_key = Some(Secret::from(key.into()));
        self
    }

    /// Sets whether calls to the server's tools run immediately, after approval, or never.
    pub fn permission(mut self, permission: Permission) -> Self {
        self.definition.rules.permission = Some(permission);
        self
    }

    /// Sets the timeout of a single call.
    pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
        self.definition.rules.timeout = Some(HumanDuration(timeout));
        self
    }

    /// Sets the folder in which the program runs, and in which a program with a `/` in its name is found.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets the redactor that hides the server's secrets. The redactor of [`Helve`](https://docs.rs/helve) also hides secrets in
    /// environment variables.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.options.redactor = redactor;
        self
    }

    /// Sets the options for connections: logins, pins, HTTP. Replaces a redactor that was set before.
    pub fn options(mut self, options: McpOptions) -> Self {
        self.options = options;
        self
    }

    /// Connects to the server, and waits until the server has listed its tools. The source reconnects whenever the connection is lost.
    ///
    /// # Errors
    /// Returns an error if the program is missing, the server cannot be reached, or a setting is invalid.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime.
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
