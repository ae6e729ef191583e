//! The tools of a server as a source: connected in a task of its own, followed while they change, and found again when it comes back.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::authored::FieldError;
use helve_core::{Digest, DynTool, Redactor, SourceId, SourceState, ToolList, ToolSource};
use helve_fetch::{ConnectionPool, Fetch};
use helve_mcp_wire::{Era, HeaderParam};
use parking_lot::RwLock;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinHandle;

use crate::client::{Connection, Hello, Place, Trouble};
use crate::definition::McpDefinition;
use crate::era_store::EraStore;
use crate::listen::Listening;
use crate::oauth::{Browser, MemoryStore, TokenStore};
use crate::offer::{self, Offer, Offers};
use crate::pin::{PinStore, Pinned, Pins, compare};
use crate::serve::Change;
use crate::tool::McpTool;
use crate::upstream::Upstream;

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_mins(1);
/// A connection that stood this long was a good one.
const STEADY: Duration = Duration::from_secs(10);
/// Servers tell of several changes at once.
const SETTLE: Duration = Duration::from_millis(50);
/// How long at most, for one whose list changes all the time.
const LONGEST_SETTLE: Duration = Duration::from_secs(5);
/// How often is looked whether someone agreed to something.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What servers are connected with.
#[derive(Clone)]
pub struct McpOptions {
    /// Connections over HTTP.
    pub connections: ConnectionPool,
    /// The secrets that must never show.
    pub redactor: Redactor,
    /// What people agreed to; nothing where every definition is used as it comes.
    pub pins: Option<Arc<dyn PinStore>>,
    /// What is known of the eras of servers; nothing where each is asked every time.
    pub eras: Option<Arc<dyn EraStore>>,
    /// Single requests, for logins.
    pub fetch: Fetch,
    /// Who keeps logins.
    pub logins: Arc<dyn TokenStore>,
    /// The way to a person who can log in; nothing where there is none.
    pub browser: Option<Arc<dyn Browser>>,
    /// The address of a document about this client, for issuers that read such documents.
    pub client_document: Option<String>,
}

impl std::fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpOptions").field("client_document", &self.client_document).finish_non_exhaustive()
    }
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            connections: ConnectionPool::default(),
            redactor: Redactor::default(),
            pins: None,
            eras: None,
            fetch: Fetch::default(),
            logins: Arc::new(MemoryStore::default()),
            browser: None,
            client_document: None,
        }
    }
}

/// How far a server is, for people.
#[derive(Debug, Clone, Default)]
pub struct ServerReport {
    /// The name of the source.
    pub name: String,
    /// What it runs or whom it reaches.
    pub place: String,
    /// Whether it is connected.
    pub connected: bool,
    /// Why it is not, if that is known.
    pub trouble: Option<String>,
    /// The version of the protocol.
    pub version: Option<String>,
    /// Whether someone must log in first.
    pub needs_login: bool,
    /// Who the server says it is.
    pub server: Option<String>,
    /// What it tells models to know.
    pub instructions: Option<String>,
    /// Its tools that are wanted, and whether someone agreed to them.
    pub offers: Vec<Offer>,
    /// What was wrong with its lists.
    pub notes: Vec<String>,
}

impl ServerReport {
    /// Tools that are not used because nobody agreed to them.
    pub fn withheld(&self) -> impl Iterator<Item = &Offer> {
        self.offers.iter().filter(|offer| !offer.pinned.is_same())
    }

    /// What agreeing to everything means.
    #[must_use]
    pub fn pins(&self) -> Pins {
        let tools = self.offers.iter().map(|offer| (offer.name.clone(), offer.definition.clone())).collect();
        Pins { instructions: self.instructions.clone(), tools }
    }
}

/// The tools of one server.
pub struct McpSource {
    id: SourceId,
    live: Arc<Live>,
    task: JoinHandle<()>,
    project: PathBuf,
    options: McpOptions,
}

impl std::fmt::Debug for McpSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpSource").field("id", &self.id).field("state", &*self.live.state.borrow()).finish_non_exhaustive()
    }
}

struct Live {
    upstream: Arc<Upstream>,
    state: watch::Sender<SourceState>,
    pins: Option<Arc<dyn PinStore>>,
    report: RwLock<ServerReport>,
    /// Someone has reason to think that the server can be connected now.
    again: Notify,
}

impl McpSource {
    /// Begins to connect a server, in a task that ends with the source.
    ///
    /// # Errors
    /// Where the definition has a mistake, with the field it is in.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn connect(definition: &McpDefinition, project: &Path, options: &McpOptions) -> Result<Arc<Self>, FieldError> {
        options.redactor.add_written(definition.secrets());
        let place = definition.read_place(project, options)?;
        let identity = definition.identity(project);
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}});
        let upstream = Arc::new(Upstream::new(definition.clone(), identity, place, capabilities, options.eras.clone()));
        let report = ServerReport { name: definition.name.clone(), place: definition.place(), ..ServerReport::default() };
        let state = watch::Sender::new(SourceState::Connecting);
        let live = Arc::new(Live { upstream, state, pins: options.pins.clone(), report: RwLock::new(report), again: Notify::new() });
        let task = tokio::spawn(live.clone().run());
        let id = SourceId::from(format!("mcp:{}", definition.name).as_str());
        Ok(Arc::new(Self { id, live, task, project: project.to_owned(), options: options.clone() }))
    }

    /// How far the server is.
    #[must_use]
    pub fn report(&self) -> ServerReport {
        self.live.report.read().clone()
    }

    /// Who the server is, to those who keep what people agreed to.
    #[must_use]
    pub fn identity(&self) -> Digest {
        self.live.upstream.identity
    }

    /// The server, for those who pass requests on.
    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.live.upstream
    }

    /// Lets a person log in at the server, and connects it.
    ///
    /// # Errors
    /// Why nobody is logged in.
    pub async fn login(&self, browser: Arc<dyn Browser>) -> Result<(), Trouble> {
        let options = McpOptions { browser: Some(browser), ..self.options.clone() };
        let definition = &self.live.upstream.definition;
        let place = definition.read_place(&self.project, &options).map_err(|error| Trouble::Protocol(error.to_string()))?;
        if matches!(place, Place::Command(_)) {
            return Err(Trouble::Unauthorised("a program on this machine needs no login".to_owned()));
        }
        Connection::open(&place, &Hello::helve(json!({})), None).await?;
        self.live.again.notify_one();
        Ok(())
    }

    /// Forgets the login at the server.
    ///
    /// # Errors
    /// Where it cannot be forgotten.
    pub async fn logout(&self) -> Result<(), String> {
        self.live.upstream.definition.logout(&self.options).await
    }

    /// Waits until the server was connected once, or has failed to.
    pub async fn settled(&self) {
        let mut state = self.live.state.subscribe();
        // The sender lives as long as this does.
        let _ = state.wait_for(|state| !matches!(state, SourceState::Connecting)).await;
    }

    /// What a trusted server says about its tools that Helve has no words for, by what stands behind each.
    #[must_use]
    pub fn said(&self) -> Vec<(Digest, Map<String, Value>)> {
        if !self.live.upstream.definition.trusted {
            return Vec::new();
        }
        let extra = |offer: &Offer| {
            let fields = ["annotations", "icons", "_meta"];
            fields.iter().filter_map(|field| Some(((*field).to_owned(), offer.definition.get(*field)?.clone()))).collect()
        };
        self.report().offers.iter().map(|offer| (self.live.behind(offer), extra(offer))).collect()
    }

    /// Looks again at what people agreed to, without waiting for the next look.
    pub fn look_again(&self) {
        self.live.publish();
    }
}

impl Drop for McpSource {
    fn drop(&mut self) {
        self.task.abort();
        // Whoever still holds a tool of it finds the server gone.
        self.live.upstream.close("it is not part of the project any more");
    }
}

impl ToolSource for McpSource {
    fn id(&self) -> &SourceId {
        &self.id
    }

    fn may_bring(&self, name: &str) -> bool {
        self.live.upstream.definition.may_bring(name)
    }

    fn withholds(&self, name: &str) -> bool {
        self.may_bring(name) && self.report().withheld().any(|offer| name.ends_with(offer.name.as_str()))
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.live.state.subscribe()
    }
}

impl Live {
    /// Connects, and again whenever the connection is lost.
    async fn run(self: Arc<Self>) {
        let mut delay = Duration::ZERO;
        loop {
            let begun = Instant::now();
            let trouble = match self.upstream.open().await {
                Ok(connection) => self.follow(Arc::new(connection)).await,
                Err(trouble) => trouble,
            };
            // Whatever took so long was no connection where none was ever used.
            if begun.elapsed() >= STEADY && self.upstream.now().is_some() {
                delay = Duration::ZERO;
            }
            let why = trouble.to_string();
            self.upstream.set(Err(trouble.clone()));
            // A server that only restarts keeps its tools on offer meanwhile.
            if !delay.is_zero() || !matches!(*self.state.borrow(), SourceState::Ready(_)) {
                self.failed(&why);
                self.report.write().needs_login = matches!(trouble, Trouble::Unauthorised(_));
            }
            tracing::info!(server = self.upstream.definition.name, why, ?delay, "the server is not connected; it is tried again");
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.again.notified() => delay = Duration::ZERO,
            }
            delay = (delay * 2).clamp(FIRST_DELAY, LONGEST_DELAY);
        }
    }

    fn failed(&self, why: &str) {
        let mut report = self.report.write();
        report.connected = false;
        report.trouble = Some(why.to_owned());
        drop(report);
        self.state.send_replace(SourceState::Failed(why.into()));
    }

    /// Offers what a connection brings for as long as it stands; says why it does not any more.
    async fn follow(&self, connection: Arc<Connection>) -> Trouble {
        let mut changes = connection.changes();
        let mut stamp = self.stamp();
        let mut listening = Listening::begin(&connection).await;
        if let Err(trouble) = self.list(&connection).await {
            return trouble;
        }
        // What may be called is settled before anyone can call it.
        self.publish();
        self.upstream.set(Ok(connection.clone()));
        self.upstream.watch_again();
        let (mut settle, mut listed) = (SETTLE, Instant::now());
        loop {
            tokio::select! {
                trouble = connection.wait_for_end() => return trouble,
                told = changes.recv() => {
                    let change = match told {
                        Ok(change) => change,
                        Err(broadcast::error::RecvError::Lagged(_)) => Change::Tools,
                        Err(broadcast::error::RecvError::Closed) => return Trouble::Gone("the connection was closed".to_owned()),
                    };
                    let is_tools = change == Change::Tools;
                    let _ = self.upstream.changes().send(change);
                    if is_tools {
                        // A server that says so all the time is asked less and less often.
                        let often = listed.elapsed() < settle * 2;
                        settle = if often { (settle * 2).min(LONGEST_SETTLE) } else { SETTLE };
                        if let Some(trouble) = pause(&connection, settle).await {
                            return trouble;
                        }
                        listed = Instant::now();
                        self.pass_on(&mut changes);
                        if let Err(trouble) = self.list(&connection).await {
                            if trouble.ends_connection() {
                                return trouble;
                            }
                            let note = format!("the list of tools has changed and cannot be read: {trouble}");
                            tracing::warn!(server = self.upstream.definition.name, note);
                            self.report.write().notes = vec![note];
                        }
                        self.publish();
                    }
                }
                again = end_of(&mut listening) => {
                    listening = None;
                    if again {
                        if let Some(trouble) = pause(&connection, FIRST_DELAY).await {
                            return trouble;
                        }
                        listening = Listening::begin(&connection).await;
                        // Something may have been missed, or the server may be gone.
                        match self.list(&connection).await {
                            Err(trouble) if trouble.ends_connection() => return trouble,
                            _ => self.publish(),
                        }
                    }
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    let now = self.stamp();
                    if now != stamp {
                        stamp = now;
                        self.publish();
                    }
                }
            }
        }
    }

    /// Tells of what changed meanwhile, but for the tools, which are about to be listed.
    fn pass_on(&self, changes: &mut broadcast::Receiver<Change>) {
        loop {
            let missed = match changes.try_recv() {
                Ok(Change::Tools) => vec![],
                Ok(change) => vec![change],
                Err(broadcast::error::TryRecvError::Lagged(_)) => vec![Change::Prompts, Change::Resources],
                Err(_) => return,
            };
            for change in missed {
                let _ = self.upstream.changes().send(change);
            }
        }
    }

    fn stamp(&self) -> u64 {
        self.pins.as_ref().map_or(0, |pins| pins.stamp())
    }

    /// Asks for the list of tools.
    async fn list(&self, connection: &Connection) -> Result<(), Trouble> {
        let mut notes = Vec::new();
        let mut entries = Vec::new();
        if connection.can("tools") {
            entries = offer::list(connection, "tools/list", "tools", &mut notes).await?;
        } else {
            notes.push("the server does not say that it has tools".to_owned());
        }
        let wants = |entry: &Value| entry.get("name").and_then(Value::as_str).is_none_or(|name| self.upstream.definition.wants(name));
        let entries = entries.into_iter().filter(wants).collect();
        let facts = &connection.facts;
        let mut offers = Offers::read(entries, facts.instructions.as_deref(), notes, connection.is_http() && connection.era == Era::Modern);
        offers.retain_wanted(&self.upstream.definition);
        for note in &offers.notes {
            tracing::info!(server = self.upstream.definition.name, note, "the server's list of tools");
        }
        let mut report = self.report.write();
        let server = [facts.name.as_str(), facts.version.as_str()].join(" ").trim().to_owned();
        *report = ServerReport {
            name: report.name.clone(),
            place: report.place.clone(),
            connected: true,
            trouble: None,
            needs_login: false,
            version: Some(connection.version.clone()),
            server: Some(server).filter(|server| !server.is_empty()),
            instructions: facts.instructions.clone(),
            offers: offers.tools,
            notes: offers.notes,
        };
        Ok(())
    }

    /// Offers those tools that someone agreed to.
    fn publish(&self) {
        let pins = match self.pins.as_ref().map(|pins| pins.pins(&self.upstream.identity)) {
            None => None,
            Some(Ok(pins)) => Some(pins),
            Some(Err(why)) => {
                self.upstream.approve(HashMap::new());
                return self.failed(&format!("what was agreed to cannot be read, so none of its tools is used: {why}"));
            }
        };
        let mut report = self.report.write();
        if !report.connected && report.offers.is_empty() {
            return;
        }
        let instructions = report.instructions.clone();
        for offer in &mut report.offers {
            offer.pinned = match &pins {
                None => Pinned::Same,
                Some(pins) => compare(pins.as_ref(), &offer.name, &offer.definition, instructions.as_deref()),
            };
        }
        let agreed: Vec<Offer> = report.offers.iter().filter(|offer| offer.pinned.is_same()).cloned().collect();
        drop(report);
        self.upstream.approve(agreed.iter().map(|offer| (offer.name.clone(), offer.digest)).collect());
        match self.tools(&agreed) {
            Ok(tools) => drop(self.state.send_replace(SourceState::Ready(tools))),
            Err(why) => self.failed(&why),
        }
    }

    /// What stands behind a tool: which server, and what it said.
    fn behind(&self, offer: &Offer) -> Digest {
        Digest::of([self.upstream.identity.as_bytes().as_slice(), offer.digest.as_bytes()])
    }

    fn tools(&self, offers: &[Offer]) -> Result<ToolList, String> {
        let definition = &self.upstream.definition;
        let plain = crate::definition::ToolFields::default();
        let mut names = HashMap::new();
        let tools = offers.iter().filter_map(|offer| {
            let fields = definition.tools.get(&offer.name).unwrap_or(&plain);
            if let Some(name) = &fields.name {
                names.insert(offer.name.clone(), name.clone());
            }
            // It was read before it was offered.
            let spec = offer::spec(&offer.definition, definition, fields).ok()?.with_implementation(self.behind(offer));
            let headers = HeaderParam::of(offer.definition.get("inputSchema").unwrap_or(&Value::Null)).unwrap_or_default();
            let (name, upstream) = (offer.name.as_str().into(), self.upstream.clone());
            Some(Arc::new(McpTool { spec: spec.share(), name, definition: offer.digest, headers, upstream }) as Arc<dyn DynTool>)
        });
        let list: ToolList = tools.collect();
        list.renamed(&names).and_then(|list| list.prefixed(definition.prefix())).map_err(|error| error.to_string())
    }
}

/// Waits a little; says where the connection ended meanwhile.
async fn pause(connection: &Connection, time: Duration) -> Option<Trouble> {
    tokio::time::timeout(time, connection.wait_for_end()).await.ok()
}

/// Waits for the end of a request that stands; for ever where there is none.
async fn end_of(listening: &mut Option<Listening>) -> bool {
    match listening {
        Some(listening) => listening.end().await,
        None => std::future::pending().await,
    }
}
