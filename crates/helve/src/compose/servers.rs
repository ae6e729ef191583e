//! The servers of a project: connected when its folder is trusted, let go when their files are gone, and used only as far as a person
//! has agreed to their tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

use helve_core::authored::FieldError;
use helve_core::{Digest, Timestamp, ToolSource};
use helve_fetch::Lines;
use helve_http::RemoteSource;
use helve_mcp::oauth::Browser;
use helve_mcp::{EraStore, McpOptions, McpSource, PinStore, Pins, ServerReport, Trouble};
use helve_mcp_wire::Era;
use helve_project::{Diagnostic, ProjectFile, Severity, StateError, StateFolder};
use serde::{Deserialize, Serialize};

use super::Helve;
use super::load::Loaded;
use super::logins::logins;
use super::project::{Project, rank_of};

const PINS: &str = "mcp-pins.json";
const ERAS: &str = "mcp-eras.json";
/// How long the era of a server is remembered; it may have been updated since.
const ERA_DAYS: i64 = 7;

/// The servers that are connected, each with what its file says.
#[derive(Default)]
pub(super) struct Servers {
    remotes: RwLock<Vec<(String, Arc<RemoteSource>)>>,
    mcp: RwLock<Vec<(String, Arc<McpSource>)>>,
    lines: Lines,
}

impl Servers {
    pub(super) fn mcp(&self) -> Vec<Arc<McpSource>> {
        self.mcp.read().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, source)| source.clone()).collect()
    }

    /// What is odd about the servers now.
    pub(super) fn warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        for report in self.mcp().iter().map(|source| source.report()) {
            let withheld: Vec<&str> = report.withheld().map(|offer| offer.name.as_str()).collect();
            if !withheld.is_empty() {
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
    pub(super) fn connect_servers(&self, project: &Project, loaded: &Loaded, trusted: bool) -> Vec<Diagnostic> {
        let mut wrong = Vec::new();
        let rank = rank_of(loaded, "mcp").saturating_add(1);
        let options = McpOptions {
            lines: project.servers.lines.clone(),
            redactor: self.redactor.clone(),
            pins: Some(Arc::new(PinFile::of(project.state.clone()))),
            eras: project.state.clone().map(|state| Arc::new(EraFile(state)) as Arc<dyn EraStore>),
            fetch: project.fetch.clone(),
            logins: logins(project.state.as_ref()),
            ..McpOptions::default()
        };
        let remotes = loaded.remotes.iter().map(|(definition, file)| (definition.name.as_str(), definition, file));
        let connect = |definition: &_| RemoteSource::connect(definition, &project.fetch, &self.redactor);
        self.keep(&project.servers.remotes, remotes, connect, trusted, rank, &mut wrong);
        let servers = loaded.servers.iter().map(|(definition, file)| (definition.name.as_str(), definition, file));
        let connect = |definition: &_| McpSource::connect(definition, &loaded.root, &options);
        self.keep(&project.servers.mcp, servers, connect, trusted, rank, &mut wrong);
        wrong
    }

    fn keep<'a, D: 'a, S: ToolSource>(
        &self,
        connected: &RwLock<Vec<(String, Arc<S>)>>,
        wanted: impl Iterator<Item = (&'a str, &'a D, &'a ProjectFile)> + Clone,
        connect: impl Fn(&D) -> Result<Arc<S>, FieldError>,
        trusted: bool,
        rank: u32,
        wrong: &mut Vec<Diagnostic>,
    ) {
        let mut connected = connected.write().unwrap_or_else(PoisonError::into_inner);
        connected.retain(|(text, source)| {
            let stays = trusted && wanted.clone().any(|(_, _, file)| file.text() == text);
            if !stays {
                self.catalogue.remove_source(&source.scope(), source.id());
            }
            stays
        });
        for (name, definition, file) in wanted {
            if connected.iter().any(|(known, _)| known == file.text()) {
                continue;
            }
            if !trusted {
                let error = FieldError::new("", format!("the server `{name}` is not connected, because nobody trusts this folder yet"));
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
        let project = self.project.as_ref();
        project.map(|project| project.servers.mcp().iter().map(|source| source.report()).collect()).unwrap_or_default()
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
        let kept = Kept { name: shown.name.clone(), place: shown.place.clone(), pins: shown.pins() };
        PinFile::of(Some(state)).keep(source.identity(), kept)?;
        source.look_again();
        Ok(true)
    }
}

/// What was agreed to, in the user's state folder.
struct PinFile(Option<StateFolder>);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    servers: BTreeMap<Digest, Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// For people who look into the file.
    name: String,
    place: String,
    #[serde(flatten)]
    pins: Pins,
}

impl PinFile {
    fn of(state: Option<StateFolder>) -> Self {
        Self(state)
    }

    fn path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|state| state.path(PINS))
    }

    fn read(&self) -> Result<Written, String> {
        let Some(state) = &self.0 else { return Err("there is no place for what was agreed to: set HELVE_STATE_DIR or HOME".to_owned()) };
        match state.read(PINS).map_err(|error| error.to_string())? {
            None => Ok(Written::default()),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let path = state.path(PINS).display().to_string();
                format!("{path} is damaged ({error}); remove it and agree to the servers again")
            }),
        }
    }

    fn keep(&self, server: Digest, kept: Kept) -> Result<(), StateError> {
        let Some(state) = &self.0 else { return Err(StateError::Nowhere) };
        let _lock = state.lock()?;
        // What is damaged would be lost for good; nobody is asked to agree to it unread.
        let mut written = self.read().map_err(|error| StateError::Io { path: PINS.to_owned(), error: std::io::Error::other(error) })?;
        written.servers.insert(server, kept);
        state.write(PINS, &serde_json::to_string_pretty(&written).unwrap_or_default())
    }
}

impl PinStore for PinFile {
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String> {
        Ok(self.read()?.servers.remove(server).map(|kept| kept.pins))
    }

    fn stamp(&self) -> u64 {
        let facts = self.path().and_then(|path| std::fs::metadata(path).ok());
        facts.map_or(0, |facts| {
            let time = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            u64::try_from(time.as_nanos() & u128::from(u64::MAX)).unwrap_or_default() ^ facts.len()
        })
    }
}

/// Which servers spoke the older era, and when. Those of the newer one are asked in any case.
struct EraFile(StateFolder);

impl EraFile {
    fn read(&self) -> BTreeMap<Digest, Timestamp> {
        self.0.read(ERAS).ok().flatten().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

impl EraStore for EraFile {
    fn era(&self, server: &Digest) -> Option<Era> {
        let since = Timestamp::now().duration_since(*self.read().get(server)?);
        (0..ERA_DAYS * 86_400).contains(&since.as_secs()).then_some(Era::Legacy)
    }

    fn remember(&self, server: &Digest, era: Era) {
        let keep = || {
            let _lock = self.0.lock().ok()?;
            let mut eras = self.read();
            match era {
                Era::Legacy => eras.insert(*server, Timestamp::now()),
                Era::Modern => eras.remove(server),
            };
            self.0.write(ERAS, &serde_json::to_string(&eras).ok()?).ok()
        };
        if keep().is_none() {
            tracing::debug!("the era of a server could not be remembered");
        }
    }
}
