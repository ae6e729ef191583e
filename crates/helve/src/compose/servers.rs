//! The servers of a project: connected when its folder is trusted, let go when their files are gone, and used only as far as a person
//! has agreed to their tools.

use std::path::PathBuf;
use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{SourceId, SourceState, ToolSource};
use helve_fetch::ConnectionPool;
use helve_http::RemoteSource;
use helve_mcp::oauth::Browser;
use helve_mcp::{EraStore, McpDefinition, McpOptions, McpSource, ServerReport, Trouble};
use helve_project::{Diagnostic, Gate, ProjectFile, Severity, StateError};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::Helve;
use super::eras::EraFile;
use super::logins::logins;
use super::pins::{Kept, PinFile};
use super::project::{LoadedProject as Loaded, Project, rank_of};

/// A server that is not connected because a person has not agreed to it. Agents that name its tools keep their other ones.
struct IdleServer {
    id: SourceId,
    name: String,
    /// Where it is, for an MCP server.
    place: Option<String>,
    why: &'static str,
    may_bring: Box<dyn Fn(&str) -> bool + Send + Sync>,
    state: watch::Sender<SourceState>,
}

impl IdleServer {
    fn new(name: &str, place: Option<String>, why: &'static str, may_bring: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let (id, state) = (format!("mcp:{name}").as_str().into(), watch::Sender::new(SourceState::Failed(why.into())));
        Self { id, name: name.to_owned(), place, why, may_bring: Box::new(may_bring), state }
    }

    fn report(&self) -> Option<ServerReport> {
        let trouble = Some(format!("{}; look at what it does with `helve trust`", self.why));
        Some(ServerReport { name: self.name.clone(), place: self.place.clone()?, trouble, ..ServerReport::default() })
    }
}

impl ToolSource for IdleServer {
    fn id(&self) -> &SourceId {
        &self.id
    }

    fn may_bring(&self, name: &str) -> bool {
        (self.may_bring)(name)
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.state.subscribe()
    }
}

/// The servers that are connected, each with what its file says.
#[derive(Default)]
pub(super) struct Servers {
    remotes: RwLock<Vec<(String, Arc<RemoteSource>)>>,
    mcp: RwLock<Vec<(String, Arc<McpSource>)>>,
    connections: ConnectionPool,
    /// Servers that are not connected because a person has not agreed to them.
    idle: RwLock<Vec<Arc<IdleServer>>>,
    /// The MCP servers as they are written down, with their files.
    written: RwLock<Vec<(McpDefinition, PathBuf)>>,
}

impl Servers {
    pub(super) fn mcp(&self) -> Vec<Arc<McpSource>> {
        self.mcp.read().iter().map(|(_, source)| source.clone()).collect()
    }

    /// The names of those that wait for trust.
    pub(super) fn idle_names(&self) -> Vec<String> {
        self.idle.read().iter().map(|server| server.name.clone()).collect()
    }

    /// What is odd about the servers now.
    pub(super) fn warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        for report in self.mcp().iter().map(|source| source.report()) {
            let withheld: Vec<&str> = report.withheld().map(|offer| offer.name.as_str()).collect();
            if !withheld.is_empty() && report.trouble.is_none() {
                let all = withheld.len() == report.offers.len() && report.withheld().all(|offer| offer.pinned == helve_mcp::Pinned::New);
                let what = if all { "is new: nobody has agreed to its tools" } else { "has tools that are new or have changed" };
                let message = format!("the server `{}` {what}, and {} not used: {}", report.name, are(withheld.len()), list(&withheld));
                let warning = Diagnostic::general(Severity::Warning, message);
                warnings.push(warning.hint(format!("look at them with `helve mcp approve {}`", report.name)));
            }
            if report.needs_login {
                let message = format!("nobody is logged in at the server `{}`", report.name);
                warnings
                    .push(Diagnostic::general(Severity::Warning, message).hint(format!("log in with `helve mcp login {}`", report.name)));
            }
            for note in &report.notes {
                warnings.push(Diagnostic::general(Severity::Warning, format!("the server `{}`: {note}", report.name)));
            }
        }
        warnings
    }
}

/// Why a server is not connected.
fn why_idle(loaded: &Loaded) -> &'static str {
    match loaded.gate() {
        Gate::Open => "it is new or has changed since the folder was trusted",
        Gate::Closed => "the folder is not trusted",
    }
}

fn are(count: usize) -> String {
    if count == 1 { "1 is".to_owned() } else { format!("{count} are") }
}

/// The first of some names.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let first = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

impl Helve {
    /// Connects servers that are new and lets go of those that are gone; gives what is wrong with their files.
    pub(super) fn connect_servers(&self, project: &Project, loaded: &Loaded) -> Vec<Diagnostic> {
        let mut wrong = Vec::new();
        let options = self.mcp_options(project);
        let mut idle = project.servers.idle.write();
        for source in idle.drain(..) {
            self.catalogue.remove_source(&source.scope(), source.id());
        }
        let remotes = loaded.remotes.iter().map(|(definition, file)| (definition.name.as_str(), definition, file));
        let connect = |definition: &_| RemoteSource::connect(definition, &project.fetch, &self.redactor);
        self.keep(&project.servers.remotes, loaded, remotes, connect, &mut wrong);
        let servers = loaded.servers.iter().map(|(definition, file)| (definition.name.as_str(), definition, file));
        let connect = |definition: &_| McpSource::connect(definition, &loaded.root, &options);
        self.keep(&project.servers.mcp, loaded, servers, connect, &mut wrong);
        let waits = |file: &ProjectFile| loaded.gate_of(file.path()) == Gate::Closed;
        let why = why_idle(loaded);
        idle.extend(loaded.servers.iter().filter(|(_, file)| waits(file)).map(|(definition, _)| {
            let (own, place) = (definition.clone(), definition.place());
            Arc::new(IdleServer::new(&definition.name, Some(place), why, move |tool| own.may_bring(tool)))
        }));
        idle.extend(loaded.remotes.iter().filter(|(_, file)| waits(file)).map(|(definition, _)| {
            let own = definition.clone();
            Arc::new(IdleServer::new(&definition.name, None, why, move |tool| own.may_bring(tool)))
        }));
        for source in idle.iter() {
            self.catalogue.add_source(source.clone());
        }
        wrong
    }

    fn mcp_options(&self, project: &Project) -> McpOptions {
        McpOptions {
            connections: project.servers.connections.clone(),
            redactor: self.redactor.clone(),
            pins: Some(Arc::new(PinFile::of(project.state.clone()))),
            eras: project.state.clone().map(|state| Arc::new(EraFile(state)) as Arc<dyn EraStore>),
            fetch: project.fetch.clone(),
            logins: logins(project.state.as_ref()),
            ..McpOptions::default()
        }
    }

    /// Takes note of the servers that are written down, whether they are connected or not.
    pub(super) fn note_servers(project: &Project, loaded: &Loaded) {
        let written = loaded.servers.iter().map(|(definition, file)| (definition.clone(), loaded.root.join(&**file.path())));
        *project.servers.written.write() = written.collect();
    }

    fn keep<'a, D: 'a, S: ToolSource>(
        &self,
        connected: &RwLock<Vec<(String, Arc<S>)>>,
        loaded: &Loaded,
        wanted: impl Iterator<Item = (&'a str, &'a D, &'a ProjectFile)> + Clone,
        connect: impl Fn(&D) -> Result<Arc<S>, FieldError>,
        wrong: &mut Vec<Diagnostic>,
    ) {
        let is_agreed = |file: &ProjectFile| loaded.gate_of(file.path()) == Gate::Open;
        let rank = rank_of(loaded, "mcp").saturating_add(1);
        let mut connected = connected.write();
        connected.retain(|(text, source)| {
            let stays = wanted.clone().any(|(_, _, file)| file.text() == text && is_agreed(file));
            if !stays {
                self.catalogue.remove_source(&source.scope(), source.id());
            }
            stays
        });
        for (name, definition, file) in wanted {
            if connected.iter().any(|(known, _)| known == file.text()) {
                continue;
            }
            if !is_agreed(file) {
                let error = FieldError::new("", format!("the server `{name}` is not connected: {}", why_idle(loaded)));
                wrong.push(file.diagnose(Severity::Warning, &error.hint("look at what it does with `helve trust`")));
                continue;
            }
            if tokio::runtime::Handle::try_current().is_err() {
                let error = FieldError::new("", "servers are connected only inside a tokio runtime");
                wrong.push(file.diagnose(Severity::Warning, &error));
                continue;
            }
            match connect(definition) {
                Ok(source) => {
                    self.catalogue.add_source_at(rank, source.clone());
                    connected.push((file.text().to_owned(), source));
                }
                Err(error) => wrong.push(file.diagnose(Severity::Error, &error)),
            }
        }
    }

    /// The MCP servers of the project, and how far they are.
    #[must_use]
    pub fn mcp_servers(&self) -> Vec<ServerReport> {
        let Some(project) = &self.project else { return Vec::new() };
        let idle = project.servers.idle.read();
        let idle = idle.iter().filter_map(|server| server.report());
        project.servers.mcp().iter().map(|source| source.report()).chain(idle).collect()
    }

    /// Why a tool is not there that one of the MCP servers may have, and what to do about it.
    #[must_use]
    pub fn why_missing(&self, tool: &str) -> Option<(String, String)> {
        let servers = &self.project.as_ref()?.servers;
        let idle = servers.idle.read();
        if let Some(server) = idle.iter().find(|server| server.may_bring(tool)) {
            let message = format!("the server `{}`, which may have it, is not connected: {}", server.name, server.why);
            return Some((message, "look at what it does with `helve trust`".to_owned()));
        }
        let sources = servers.mcp();
        let source = sources.iter().find(|source| source.may_bring(tool))?;
        let report = source.report();
        let name = &report.name;
        if let Some(trouble) = &report.trouble {
            return Some((
                format!("the server `{name}`, which may have it, is not connected: {trouble}"),
                "see `helve mcp list`".to_owned(),
            ));
        }
        let withheld = report.withheld().any(|offer| tool.ends_with(offer.name.as_str()));
        let why = || format!("the server `{name}` has it, and nobody has agreed to it yet");
        withheld.then(|| (why(), format!("look at it with `helve mcp approve {name}`")))
    }

    /// Waits until one MCP server was connected, or has failed to; at once where there is none of this name.
    pub async fn mcp_settled(&self, name: &str) {
        if let Some(source) = self.mcp_source(name) {
            source.settled().await;
        }
    }

    /// Logs in at an MCP server, with a person at this browser. Says whether there is such a server.
    ///
    /// # Errors
    /// Why nobody is logged in.
    pub async fn mcp_login(&self, name: &str, browser: Arc<dyn Browser>) -> Result<bool, Trouble> {
        match self.mcp_source(name) {
            Some(source) => source.login(browser).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Forgets the login at an MCP server. Says whether there is such a server.
    ///
    /// # Errors
    /// Where it cannot be forgotten.
    pub async fn mcp_logout(&self, name: &str) -> Result<bool, String> {
        match self.mcp_source(name) {
            Some(source) => source.logout().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// The names of the MCP servers that are written down, connected or not.
    #[must_use]
    pub fn mcp_names(&self) -> Vec<String> {
        let Some(project) = &self.project else { return Vec::new() };
        let written = project.servers.written.read();
        written.iter().map(|(definition, _)| definition.name.clone()).collect()
    }

    /// Removes the file of an MCP server, and forgets what was agreed to, and the login unless another server has the same address. Gives the file; nothing where there is no such
    /// server. It is in use until the project is read again.
    ///
    /// # Errors
    /// Where something cannot be forgotten or removed; the file goes last.
    pub async fn remove_mcp(&self, name: &str) -> Result<Option<PathBuf>, StateError> {
        let Some(project) = &self.project else { return Ok(None) };
        let written = project.servers.written.read().clone();
        let (named, others): (Vec<_>, Vec<_>) = written.into_iter().partition(|(definition, _)| definition.name == name);
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

    /// Agrees to the tools that a server offers now. Says whether there is such a server.
    ///
    /// # Errors
    /// Where the decision cannot be kept.
    pub fn approve_mcp(&self, shown: &ServerReport) -> Result<bool, StateError> {
        let Some(project) = &self.project else { return Ok(false) };
        let Some(source) = self.mcp_source(&shown.name) else { return Ok(false) };
        let state = project.state.clone().ok_or(StateError::Nowhere)?;
        // What the file says may hold a key that the environment gave.
        let place = self.redactor.clean(&shown.place).unwrap_or_else(|| shown.place.clone());
        let kept = Kept { name: shown.name.clone(), place, pins: shown.pins() };
        PinFile::of(Some(state)).keep(source.identity(), kept)?;
        source.look_again();
        Ok(true)
    }
}
