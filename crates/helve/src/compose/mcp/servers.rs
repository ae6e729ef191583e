//! Connects to the MCP servers of a trusted project, and removes servers whose files are gone.

use std::path::PathBuf;
use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{SourceId, SourceState, ToolSource};
use helve_fetch::ConnectionPool;
use helve_http::RemoteSource;
use helve_mcp::{EraStore, McpDefinition, McpOptions, McpSource, PinStatus, ServerReport};
use helve_project::{Diagnostic, Gate, ProjectFile, Severity};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::eras::EraFile;
use super::logins::logins;
use super::pins::PinFile;
use crate::compose::Helve;
use crate::compose::project::{LoadedProject, Project, rank_of};

/// The hint about a server that is not trusted.
pub(super) const TRUST_HINT: &str = "review what the server does with `helve trust`";

/// A server that Helve does not connect to because it is not trusted. It is a source without tools, so that agents that name its tools keep
/// their other tools.
pub(super) struct IdleServer {
    id: SourceId,
    pub(super) name: String,
    /// The command or URL of the server; `None` for a legacy tool server.
    place: Option<String>,
    pub(super) why: &'static str,
    may_bring: Box<dyn Fn(&str) -> bool + Send + Sync>,
    state: watch::Sender<SourceState>,
}

impl IdleServer {
    fn new(name: &str, place: Option<String>, why: &'static str, may_bring: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let (id, state) = (format!("mcp:{name}").as_str().into(), watch::Sender::new(SourceState::Failed(why.into())));
        Self { id, name: name.to_owned(), place, why, may_bring: Box::new(may_bring), state }
    }

    pub(super) fn report(&self) -> Option<ServerReport> {
        let error = Some(format!("{}; {TRUST_HINT}", self.why));
        Some(ServerReport { name: self.name.clone(), place: self.place.clone()?, error, ..ServerReport::default() })
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

/// The servers of a project: connected ones, each with the text of its file, and untrusted ones.
#[derive(Default)]
pub(in crate::compose) struct Servers {
    remotes: RwLock<Vec<(String, Arc<RemoteSource>)>>,
    mcp: RwLock<Vec<(String, Arc<McpSource>)>>,
    connections: ConnectionPool,
    /// Servers that Helve does not connect to because they are not trusted.
    pub(super) idle: RwLock<Vec<Arc<IdleServer>>>,
    /// The definitions of all MCP servers, with their files.
    pub(super) definitions: RwLock<Vec<(McpDefinition, PathBuf)>>,
}

impl Servers {
    pub(super) fn mcp(&self) -> Vec<Arc<McpSource>> {
        self.mcp.read().iter().map(|(_, source)| source.clone()).collect()
    }

    /// Returns the names of servers that are not trusted.
    pub(in crate::compose) fn idle_names(&self) -> Vec<String> {
        self.idle.read().iter().map(|server| server.name.clone()).collect()
    }

    /// Returns warnings about the servers.
    pub(in crate::compose) fn warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        for report in self.mcp().iter().map(|source| source.report()) {
            let withheld: Vec<&str> = report.withheld().map(|offer| offer.name.as_str()).collect();
            if !withheld.is_empty() && report.error.is_none() {
                let all = withheld.len() == report.offers.len() && report.withheld().all(|offer| offer.pinned == PinStatus::New);
                let what = if all { "is new and its tools are not approved" } else { "has tools that are new or have changed" };
                let message = format!("the server `{}` {what}; {} not used: {}", report.name, are(withheld.len()), list(&withheld));
                let warning = Diagnostic::general(Severity::Warning, message);
                warnings.push(warning.hint(format!("review them with `helve mcp approve {}`", report.name)));
            }
            if report.needs_login {
                let message = format!("the server `{}` requires a login", report.name);
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

/// Returns the reason why a server is not trusted.
fn why_idle(loaded: &LoadedProject) -> &'static str {
    match loaded.gate() {
        Gate::Open => "it is new or has changed since the folder was trusted",
        Gate::Closed => "the folder is not trusted",
    }
}

fn are(count: usize) -> String {
    if count == 1 { "1 is".to_owned() } else { format!("{count} are") }
}

/// Returns the first few names as a list, and the number of the others.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let first = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

impl Helve {
    /// Connects to new servers, and removes those whose files are gone. Returns errors and warnings about the files.
    pub(in crate::compose) fn connect_servers(&self, project: &Project, loaded: &LoadedProject) -> Vec<Diagnostic> {
        let mut wrong = Vec::new();
        let options = self.mcp_options(project);
        let mut idle = project.servers.idle.write();
        for source in idle.drain(..) {
            self.catalogue.remove_source(&source.scope(), source.id());
        }
        let remotes = loaded.remotes.iter().map(|(definition, file)| (definition.name.as_str(), definition, file));
        let connect = |definition: &_| RemoteSource::connect(definition, &project.fetch, &self.redactor);
        self.update(&project.servers.remotes, loaded, remotes, connect, &mut wrong);
        let servers = loaded.servers.iter().map(|(definition, file)| (definition.name.as_str(), definition, file));
        let connect = |definition: &_| McpSource::connect(definition, &loaded.root, &options);
        self.update(&project.servers.mcp, loaded, servers, connect, &mut wrong);
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

    pub(super) fn mcp_options(&self, project: &Project) -> McpOptions {
        McpOptions {
            connections: project.servers.connections.clone(),
            redactor: self.redactor.clone(),
            pins: Some(Arc::new(PinFile::of(project.state.clone()))),
            eras: project.state.clone().map(|state| Arc::new(EraFile::new(state)) as Arc<dyn EraStore>),
            fetch: project.fetch.clone(),
            logins: logins(project.state.as_ref()),
            ..McpOptions::default()
        }
    }

    /// Stores the definitions of all servers, connected or not.
    pub(in crate::compose) fn note_servers(project: &Project, loaded: &LoadedProject) {
        let definitions = loaded.servers.iter().map(|(definition, file)| (definition.clone(), loaded.root.join(&**file.path())));
        *project.servers.definitions.write() = definitions.collect();
    }

    fn update<'a, D: 'a, S: ToolSource>(
        &self,
        connected: &RwLock<Vec<(String, Arc<S>)>>,
        loaded: &LoadedProject,
        wanted: impl Iterator<Item = (&'a str, &'a D, &'a ProjectFile)> + Clone,
        connect: impl Fn(&D) -> Result<Arc<S>, FieldError>,
        wrong: &mut Vec<Diagnostic>,
    ) {
        let is_trusted = |file: &ProjectFile| loaded.gate_of(file.path()) == Gate::Open;
        let rank = rank_of(loaded, "mcp").saturating_add(1);
        let mut connected = connected.write();
        connected.retain(|(text, source)| {
            let stays = wanted.clone().any(|(_, _, file)| file.text() == text && is_trusted(file));
            if !stays {
                self.catalogue.remove_source(&source.scope(), source.id());
            }
            stays
        });
        for (name, definition, file) in wanted {
            if connected.iter().any(|(known, _)| known == file.text()) {
                continue;
            }
            if !is_trusted(file) {
                let error = FieldError::new("", format!("the server `{name}` is not connected: {}", why_idle(loaded)));
                wrong.push(file.diagnose(Severity::Warning, &error.hint(TRUST_HINT)));
                continue;
            }
            if tokio::runtime::Handle::try_current().is_err() {
                let error = FieldError::new("", "MCP servers need a Tokio runtime: open the project in an async context");
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
}
