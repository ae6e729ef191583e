//! Keeps a server connected: connects, follows changes of the server's tools, and reconnects when the connection is lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::{Backoff, Digest, DynTool, SourceState, ToolList};
use helve_mcp_wire::{Change, Era, HeaderParam};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{Notify, broadcast, watch};

use super::ServerReport;
use crate::client::connection::Connection;
use crate::client::error::RequestError;
use crate::client::offer::{self, Offer, Offers};
use crate::client::subscription::ChangeSubscription;
use crate::client::tool::McpTool;
use crate::client::upstream::Upstream;
use crate::definition::ToolFields;
use crate::pin::{PinStatus, PinStore, compare};

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_mins(1);
/// Minimum duration of a connection that resets the backoff.
const STEADY: Duration = Duration::from_secs(10);
/// Debounce delay for changes of the tool list. Servers often send several notifications at once.
const SETTLE: Duration = Duration::from_millis(50);
/// Maximum debounce delay, for a server whose tool list changes all the time.
const LONGEST_SETTLE: Duration = Duration::from_secs(5);
/// Interval between checks for changed pins.
const PIN_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Live {
    pub(super) upstream: Arc<Upstream>,
    pub(super) state: watch::Sender<SourceState>,
    pub(super) report: RwLock<ServerReport>,
    /// Skips the rest of the backoff delay, because a connection will probably succeed now.
    pub(super) reconnect: Notify,
    pins: Option<Arc<dyn PinStore>>,
}

impl Live {
    pub(super) fn new(upstream: Arc<Upstream>, pins: Option<Arc<dyn PinStore>>) -> Arc<Self> {
        let definition = &upstream.definition;
        let report = ServerReport { name: definition.name.clone(), place: definition.place(), ..ServerReport::default() };
        let state = watch::Sender::new(SourceState::Connecting);
        Arc::new(Self { upstream, state, report: RwLock::new(report), reconnect: Notify::new(), pins })
    }

    /// Connects to the server, and reconnects whenever the connection is lost. Never returns.
    pub(super) async fn run(self: Arc<Self>) {
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        let mut delay = Duration::ZERO;
        loop {
            let started = Instant::now();
            let error = match self.upstream.open().await {
                Ok(connection) => self.follow(Arc::new(connection)).await,
                Err(error) => error,
            };
            // Only a long connection resets the backoff, not a long attempt to connect.
            if started.elapsed() >= STEADY && self.upstream.now().is_some() {
                backoff.reset();
                delay = Duration::ZERO;
            }
            let why = error.to_string();
            let needs_login = matches!(error, RequestError::LoginRequired(_));
            self.upstream.set(Err(error));
            // The tools stay available while a server restarts.
            if !delay.is_zero() || !matches!(*self.state.borrow(), SourceState::Ready(_)) {
                self.fail(&why);
                self.report.write().needs_login = needs_login;
            }
            tracing::info!(server = self.upstream.definition.name, why, ?delay, "MCP server is not connected; retrying");
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.reconnect.notified() => backoff.reset(),
            }
            delay = backoff.delay();
        }
    }

    fn fail(&self, why: &str) {
        let mut report = self.report.write();
        report.connected = false;
        report.error = Some(why.to_owned());
        drop(report);
        self.state.send_replace(SourceState::Failed(why.into()));
    }

    /// Publishes the tools of a connection until the connection ends. Returns why it ended.
    async fn follow(&self, connection: Arc<Connection>) -> RequestError {
        let Err(error) = self.try_follow(&connection).await;
        error
    }

    async fn try_follow(&self, connection: &Arc<Connection>) -> Result<std::convert::Infallible, RequestError> {
        let mut changes = connection.changes();
        let mut stamp = self.stamp();
        let mut subscription = ChangeSubscription::start(connection).await;
        self.list(connection).await?;
        // Sets the approvals before the first call can use the connection.
        self.publish();
        self.upstream.set(Ok(connection.clone()));
        self.upstream.renew_watches();
        let (mut settle, mut listed) = (SETTLE, Instant::now());
        loop {
            tokio::select! {
                error = connection.wait_for_end() => return Err(error),
                change = changes.recv() => {
                    let change = match change {
                        Ok(change) => change,
                        Err(RecvError::Lagged(_)) => Change::Tools,
                        Err(RecvError::Closed) => return Err(RequestError::Disconnected("the connection was closed".to_owned())),
                    };
                    let is_tools = change == Change::Tools;
                    let _ = self.upstream.changes().send(change);
                    if is_tools {
                        // If a server reports changes all the time, Helve requests its list less and less often.
                        let often = listed.elapsed() < settle * 2;
                        settle = if often { (settle * 2).min(LONGEST_SETTLE) } else { SETTLE };
                        pause(connection, settle).await?;
                        listed = Instant::now();
                        self.forward_changes(&mut changes);
                        self.list_again(connection).await?;
                    }
                }
                again = end_of(&mut subscription) => {
                    subscription = None;
                    if again {
                        pause(connection, FIRST_DELAY).await?;
                        subscription = ChangeSubscription::start(connection).await;
                        // In the meantime, Helve may have missed a change, or the server may be gone.
                        self.list_again(connection).await?;
                    }
                }
                () = tokio::time::sleep(PIN_INTERVAL) => {
                    let now = self.stamp();
                    if now != stamp {
                        stamp = now;
                        self.publish();
                    }
                }
            }
        }
    }

    /// Forwards pending changes, except changes of the tools, because the caller is about to list them.
    fn forward_changes(&self, changes: &mut broadcast::Receiver<Change>) {
        let send = |change| drop(self.upstream.changes().send(change));
        loop {
            match changes.try_recv() {
                Ok(Change::Tools) => {}
                Ok(change) => send(change),
                Err(TryRecvError::Lagged(_)) => [Change::Prompts, Change::Resources].into_iter().for_each(send),
                Err(_) => return,
            }
        }
    }

    fn stamp(&self) -> u64 {
        self.pins.as_ref().map_or(0, |pins| pins.stamp())
    }

    /// Lists the tools again. If the new list cannot be read, the previous list stays in use.
    async fn list_again(&self, connection: &Connection) -> Result<(), RequestError> {
        match self.list(connection).await {
            Err(error) if error.ends_connection() => return Err(error),
            Err(error) => {
                let note = format!("the list of tools has changed and cannot be read: {error}");
                tracing::warn!(server = self.upstream.definition.name, note);
                self.report.write().notes = vec![note];
            }
            Ok(()) => {}
        }
        self.publish();
        Ok(())
    }

    async fn list(&self, connection: &Connection) -> Result<(), RequestError> {
        let mut notes = Vec::new();
        let mut entries = Vec::new();
        if connection.can("tools") {
            entries = offer::list(connection, "tools/list", "tools", &mut notes).await?;
        } else {
            notes.push("the server does not declare the capability `tools`".to_owned());
        }
        let wants = |entry: &Value| entry.get("name").and_then(Value::as_str).is_none_or(|name| self.upstream.definition.wants(name));
        let entries = entries.into_iter().filter(wants).collect();
        let facts = &connection.facts;
        let mut offers = Offers::read(entries, facts.instructions.as_deref(), notes, connection.is_http() && connection.era == Era::Modern);
        offers.retain_wanted(&self.upstream.definition);
        for note in &offers.notes {
            tracing::info!(server = self.upstream.definition.name, note, "problem with the server's list of tools");
        }
        let mut report = self.report.write();
        let server = [facts.name.as_str(), facts.version.as_str()].join(" ").trim().to_owned();
        *report = ServerReport {
            name: report.name.clone(),
            place: report.place.clone(),
            connected: true,
            error: None,
            needs_login: false,
            version: Some(connection.version.clone()),
            server: Some(server).filter(|server| !server.is_empty()),
            instructions: facts.instructions.clone(),
            offers: offers.tools,
            notes: offers.notes,
        };
        Ok(())
    }

    /// Compares the offered tools with the pins, and publishes the approved tools.
    pub(super) fn publish(&self) {
        let pins = match self.pins.as_ref().map(|pins| pins.pins(&self.upstream.identity)) {
            None => None,
            Some(Ok(pins)) => Some(pins),
            Some(Err(why)) => {
                self.upstream.approve(HashMap::new());
                return self.fail(&format!("cannot read the approved definitions of its tools, so none of them is used: {why}"));
            }
        };
        let mut report = self.report.write();
        if !report.connected && report.offers.is_empty() {
            return;
        }
        let instructions = report.instructions.clone();
        for offer in &mut report.offers {
            offer.pinned = match &pins {
                None => PinStatus::Same,
                Some(pins) => compare(pins.as_ref(), &offer.name, &offer.definition, instructions.as_deref()),
            };
        }
        let approved: Vec<Offer> = report.offers.iter().filter(|offer| offer.pinned.is_same()).cloned().collect();
        drop(report);
        self.upstream.approve(approved.iter().map(|offer| (offer.name.clone(), offer.digest)).collect());
        match self.tools(&approved) {
            Ok(tools) => drop(self.state.send_replace(SourceState::Ready(tools))),
            Err(why) => self.fail(&why),
        }
    }

    /// Returns the digest of what implements a tool: the server, and its definition of the tool.
    pub(super) fn implementation(&self, offer: &Offer) -> Digest {
        Digest::of([self.upstream.identity.as_bytes().as_slice(), offer.digest.as_bytes()])
    }

    fn tools(&self, offers: &[Offer]) -> Result<ToolList, String> {
        let definition = &self.upstream.definition;
        let plain = ToolFields::default();
        let mut names = HashMap::new();
        let tools = offers.iter().filter_map(|offer| {
            let fields = definition.tools.get(&offer.name).unwrap_or(&plain);
            if let Some(name) = &fields.name {
                names.insert(offer.name.clone(), name.clone());
            }
            // Cannot fail: the definition was checked before it became an offer.
            let spec = offer::spec(&offer.definition, definition, fields).ok()?.with_implementation(self.implementation(offer));
            let headers = HeaderParam::of(offer.definition.get("inputSchema").unwrap_or(&Value::Null)).unwrap_or_default();
            let (name, upstream) = (offer.name.as_str().into(), self.upstream.clone());
            Some(Arc::new(McpTool { spec: spec.share(), name, definition: offer.digest, headers, upstream }) as Arc<dyn DynTool>)
        });
        let list: ToolList = tools.collect();
        list.renamed(&names).and_then(|list| list.prefixed(definition.prefix())).map_err(|error| error.to_string())
    }
}

/// Waits for the duration `time`.
///
/// # Errors
/// Returns an error as soon as the connection ends.
async fn pause(connection: &Connection, time: Duration) -> Result<(), RequestError> {
    tokio::time::timeout(time, connection.wait_for_end()).await.map_or(Ok(()), Err)
}

/// Waits for the end of a subscription, or forever if there is none. Returns whether to subscribe again.
async fn end_of(subscription: &mut Option<ChangeSubscription>) -> bool {
    match subscription {
        Some(subscription) => subscription.end().await,
        None => std::future::pending().await,
    }
}
