//! Manages a project's MCP servers: their state, logins, approved definitions, and removal.

use std::path::PathBuf;
use std::sync::Arc;

use helve_core::ToolSource;
use helve_mcp::login::Browser;
use helve_mcp::{McpSource, RequestError, ServerReport};
use helve_project::StateError;

use super::pins::{PinFile, PinnedServer};
use super::servers::TRUST_HINT;
use crate::compose::Helve;

impl Helve {
    /// Returns the state of all MCP servers of the project.
    #[must_use]
    pub fn mcp_servers(&self) -> Vec<ServerReport> {
        let Some(project) = &self.project else { return Vec::new() };
        let idle = project.servers.idle.read();
        let idle = idle.iter().filter_map(|server| server.report());
        project.servers.mcp().iter().map(|source| source.report()).chain(idle).collect()
    }

    /// Returns why a tool that one of the MCP servers may have is missing, and a hint. Returns `None` if no server may have the tool.
    #[must_use]
    pub fn why_missing(&self, tool: &str) -> Option<(String, String)> {
        let servers = &self.project.as_ref()?.servers;
        let idle = servers.idle.read();
        if let Some(server) = idle.iter().find(|server| server.may_bring(tool)) {
            let message = format!("the MCP server `{}`, which may have the tool, is not connected: {}", server.name, server.why);
            return Some((message, TRUST_HINT.to_owned()));
        }
        let sources = servers.mcp();
        let source = sources.iter().find(|source| source.may_bring(tool))?;
        let report = source.report();
        let name = &report.name;
        if let Some(error) = &report.error {
            return Some((
                format!("the MCP server `{name}`, which may have the tool, is not connected: {error}"),
                "see `helve mcp list`".to_owned(),
            ));
        }
        let withheld = report.withheld().any(|offer| tool.ends_with(offer.name.as_str()));
        let why = || format!("the MCP server `{name}` has the tool, but you have not approved it");
        withheld.then(|| (why(), format!("review it with `helve mcp approve {name}`")))
    }

    /// Waits until Helve is connected to the MCP server `name`, or the connection has failed. Returns at once if there is no such server.
    pub async fn mcp_settled(&self, name: &str) {
        if let Some(source) = self.mcp_source(name) {
            source.settled().await;
        }
    }

    /// Logs in to the MCP server `name`; the person logs in with `browser`. Returns whether there is such a server.
    ///
    /// # Errors
    /// Returns an error if the login fails.
    pub async fn mcp_login(&self, name: &str, browser: Arc<dyn Browser>) -> Result<bool, RequestError> {
        match self.mcp_source(name) {
            Some(source) => source.login(browser).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Deletes the stored login to the MCP server `name`. Returns whether there is such a server.
    ///
    /// # Errors
    /// Returns an error if the login cannot be deleted.
    pub async fn mcp_logout(&self, name: &str) -> Result<bool, String> {
        match self.mcp_source(name) {
            Some(source) => source.logout().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Returns the names of all MCP servers of the project, connected or not.
    #[must_use]
    pub fn mcp_names(&self) -> Vec<String> {
        let Some(project) = &self.project else { return Vec::new() };
        let definitions = project.servers.definitions.read();
        definitions.iter().map(|(definition, _)| definition.name.clone()).collect()
    }

    /// Removes an MCP server: its approved definitions, its login unless another server has the same URL, and last its file. Returns the
    /// path of the file, or `None` if there is no such server. The server stays in use until the project is reloaded.
    ///
    /// # Errors
    /// Returns an error if one of these cannot be removed.
    pub async fn remove_mcp(&self, name: &str) -> Result<Option<PathBuf>, StateError> {
        let Some(project) = &self.project else { return Ok(None) };
        let definitions = project.servers.definitions.read().clone();
        let (named, others): (Vec<_>, Vec<_>) = definitions.into_iter().partition(|(definition, _)| definition.name == name);
        let Some((definition, file)) = named.into_iter().next() else { return Ok(None) };
        let failed = |path: String| move |error| StateError::Io { path, error };
        if !others.iter().any(|(other, _)| other.url == definition.url) {
            let forgotten = definition.logout(&self.mcp_options(project)).await;
            forgotten.map_err(std::io::Error::other).map_err(failed("the login".to_owned()))?;
        }
        if project.state.is_some() {
            let root = &self.project().unwrap_or_default().root;
            PinFile::of(project.state.clone()).forget(&definition.identity(root))?;
        }
        std::fs::remove_file(&file).map_err(failed(file.display().to_string()))?;
        Ok(Some(file))
    }

    fn mcp_source(&self, name: &str) -> Option<Arc<McpSource>> {
        self.project.as_ref()?.servers.mcp().into_iter().find(|source| source.report().name == name)
    }

    /// Approves the tool definitions in `shown`, the report of a server. Returns whether there is such a server.
    ///
    /// # Errors
    /// Returns an error if the approved definitions cannot be stored.
    pub fn approve_mcp(&self, shown: &ServerReport) -> Result<bool, StateError> {
        let Some(project) = &self.project else { return Ok(false) };
        let Some(source) = self.mcp_source(&shown.name) else { return Ok(false) };
        let state = project.state.clone().ok_or(StateError::Nowhere)?;
        // The command or URL may contain a secret from the environment.
        let place = self.redactor.clean(&shown.place).unwrap_or_else(|| shown.place.clone());
        let server = PinnedServer { name: shown.name.clone(), place, pins: shown.pins() };
        PinFile::of(Some(state)).approve(source.identity(), server)?;
        source.check_approvals();
        Ok(true)
    }
}
