//! The catalogue of all tools: orders sources, resolves duplicates, and provides consistent snapshots.
//!
//! All viewers share the base, which contains the tools for everyone; the tools of a device or a conversation are overlays. Tables are
//! rebuilt on demand, so that changes of a source cost nothing until a snapshot is requested.

mod entry;
mod lookalike;
mod snapshot;
mod toolkits;

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::{
    BoxFuture, ConversationId, IntoTool, IntoTools, ListSource, Scope, SourceId, SourceState, SpecError, ToolSource, suggest,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

pub use self::entry::{DuplicateTool, Entry};
pub use self::lookalike::Lookalike;
use self::snapshot::Table;
pub use self::snapshot::{DisplacedTool, Snapshot, SourceReport};
use self::toolkits::ToolkitCache;
use crate::set::ToolSet;
use crate::toolkit::{Selection, Toolkit, ToolkitError};

/// The catalogue of all tools. Cheap to clone; clones share their contents.
#[derive(Clone)]
pub struct Catalogue {
    state: Arc<Mutex<State>>,
    /// The tools added with [`Catalogue::register`].
    own: Arc<ListSource>,
    /// Notifies when a source is added or removed.
    membership: Arc<watch::Sender<()>>,
}

/// The viewer of the catalogue. A scoped source is visible only to its own device or conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The device of the viewer, if any.
    pub device: Option<Arc<str>>,
    /// The conversation of the viewer, if any.
    pub conversation: Option<ConversationId>,
}

impl View {
    fn sees(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Global => false,
            Scope::Device(device) => self.device.as_ref() == Some(device),
            Scope::Conversation(conversation) => self.conversation.as_ref() == Some(conversation),
        }
    }
}

/// A source and its scope. Sources of two conversations may have the same id, but are different sources.
pub type SourceKey = (Scope, SourceId);

#[derive(Default)]
struct State {
    sources: Vec<SourceSlot>,
    sets: Vec<ToolSet>,
    base: Arc<Table>,
    /// The tables of scoped sources, each with the base that it was built on.
    overlays: HashMap<SourceKey, (Arc<Table>, Arc<Table>)>,
    /// Whether the base still contains a removed source.
    stale: bool,
    toolkits: ToolkitCache,
}

/// A source and its latest state.
struct SourceSlot {
    rank: u32,
    source: Arc<dyn ToolSource>,
    scope: Scope,
    state: watch::Receiver<SourceState>,
    /// Whether the source is not in any table yet.
    fresh: bool,
    /// Whether the source has ended and its last state was read.
    ended: bool,
}

impl SourceSlot {
    fn take_change(&mut self) -> bool {
        // A source that has ended counts as changed once more, because its last state may be a failure.
        let changed = self.state.has_changed().unwrap_or(!self.ended);
        self.ended = self.state.has_changed().is_err();
        std::mem::take(&mut self.fresh) || changed
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalogue {
    /// Creates an empty catalogue.
    #[must_use]
    pub fn new() -> Self {
        let own = Arc::new(ListSource::new("program", []));
        let catalogue = Self { state: Arc::default(), own: own.clone(), membership: Arc::default() };
        catalogue.add_source_at(0, own);
        catalogue
    }

    /// Adds a tool of this program: a function with `#[tool]`, a closure with [`helve_core::tool_fn`], or a type that
    /// implements [`helve_core::TypedTool`], [`helve_core::Tool`] or [`helve_core::DynTool`].
    ///
    /// # Errors
    /// If the tool's name, description or schema is invalid; [`SpecError::Duplicate`] if the program already registered a tool of this
    /// name. If another source has a tool of this name, the program's own tool takes precedence.
    pub fn register<Kind>(&self, tool: impl IntoTool<Kind>) -> Result<(), SpecError> {
        self.own.add(tool.into_tool()?)
    }

    /// Adds several tools of this program, all or none: a value whose type has `#[tools]`, or a list, such as the result of
    /// [`helve_core::function::linked`].
    ///
    /// # Errors
    /// If the name, description or schema of a tool is invalid; [`SpecError::Duplicate`] if two tools of the program would have the same
    /// name.
    pub fn register_all<Kind>(&self, tools: impl IntoTools<Kind>) -> Result<(), SpecError> {
        self.own.add_all(tools.into_tools()?)
    }

    /// Adds a source after the existing ones. If two sources have tools of the same name, the earlier source takes precedence.
    pub fn add_source(&self, source: Arc<dyn ToolSource>) {
        self.add_source_at(u32::MAX, source);
    }

    /// Adds a source at a rank: after sources of the same or a lower rank, before sources of a higher rank.
    pub fn add_source_at(&self, rank: u32, source: Arc<dyn ToolSource>) {
        let slot = SourceSlot { rank, scope: source.scope(), state: source.tools(), source, fresh: true, ended: false };
        let mut state = self.lock();
        let index = state.sources.partition_point(|known| known.rank <= rank);
        state.sources.insert(index, slot);
        drop(state);
        self.membership.send_replace(());
    }

    /// Removes a source and its tools.
    pub fn remove_source(&self, scope: &Scope, id: &SourceId) {
        let mut state = self.lock();
        state.sources.retain(|slot| slot.source.id() != id || slot.scope != *scope);
        state.overlays.remove(&(scope.clone(), id.clone()));
        state.stale = true;
        drop(state);
        self.membership.send_replace(());
    }

    /// Returns the tools that a viewer sees now.
    #[must_use]
    pub fn snapshot(&self, view: &View) -> Snapshot {
        let mut state = self.lock();
        state.refresh_base();
        let base = state.base.clone();
        let overlays = state.refresh_overlays(view);
        Snapshot::new(base, overlays)
    }

    /// Returns a tool that is visible to everyone, by its name or its model name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.snapshot(&View::default()).get(name).cloned()
    }

    /// Returns the tools that are visible to everyone, in order.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Entry>> {
        self.snapshot(&View::default()).iter().cloned().collect()
    }

    /// Waits until no source is connecting.
    pub async fn settled(&self) {
        loop {
            let is_connecting = |state: &SourceState| matches!(state, SourceState::Connecting);
            let connecting = self.lock().sources.iter().find(|slot| is_connecting(&slot.state.borrow())).map(|slot| slot.state.clone());
            let Some(mut state) = connecting else { return };
            if state.wait_for(|state| !is_connecting(state)).await.is_err() {
                return;
            }
        }
    }

    /// Returns whether a tool of this name may still appear: from a source that is not connected yet, or after a person approves it.
    #[must_use]
    pub fn may_appear(&self, name: &str) -> bool {
        self.lock().sources.iter().any(|slot| {
            let ready = matches!(*slot.state.borrow(), SourceState::Ready(_));
            (!ready && slot.source.may_bring(name)) || slot.source.withholds(name)
        })
    }

    /// Replaces all tool sets.
    pub fn replace_sets(&self, sets: Vec<ToolSet>) {
        let mut state = self.lock();
        state.sets = sets;
        state.toolkits.clear();
    }

    /// Defines a tool set. It replaces a set of the same name.
    pub fn define_set(&self, set: ToolSet) {
        let mut state = self.lock();
        state.sets.retain(|known| known.name != set.name);
        state.sets.push(set);
        state.toolkits.clear();
    }

    /// Returns all tool sets, in the order of their definition.
    #[must_use]
    pub fn sets(&self) -> Vec<ToolSet> {
        self.lock().sets.clone()
    }

    /// Returns the tools of a set that are visible to everyone, in the order of the set, or `None` if there is no such set.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<Vec<Arc<Entry>>> {
        let set = self.lock().sets.iter().find(|set| *set.name == *name).cloned()?;
        let snapshot = self.snapshot(&View::default());
        let mut tools: Vec<Arc<Entry>> = Vec::new();
        for pattern in &set.tools {
            let found = snapshot.iter().filter(|entry| entry.is_named(pattern) && !tools.iter().any(|known| Arc::ptr_eq(known, entry)));
            tools.extend(found.cloned().collect::<Vec<_>>());
        }
        Some(tools)
    }

    /// Resolves the tools that an agent may use now. Returns the same toolkit until the catalogue changes.
    ///
    /// # Errors
    /// If the selection names an unknown set, or a tool that no source can provide.
    pub fn toolkit(&self, selection: &Selection, view: &View) -> Result<Toolkit, ToolkitError> {
        let snapshot = self.snapshot(view);
        if let Some(known) = self.lock().toolkits.get(Some(selection), &snapshot) {
            return Ok(known);
        }
        let toolkit = Toolkit::resolve(selection, &self.sets(), &snapshot, |name| self.may_appear(name))?;
        self.lock().toolkits.put(Some(selection), snapshot, &toolkit);
        Ok(toolkit)
    }

    /// Returns a toolkit with every tool that a viewer sees now, for a person or a program that is not an agent.
    #[must_use]
    pub fn everything(&self, view: &View) -> Toolkit {
        let snapshot = self.snapshot(view);
        let mut state = self.lock();
        if let Some(known) = state.toolkits.get(None, &snapshot) {
            return known;
        }
        let toolkit = Toolkit::everything(&snapshot);
        state.toolkits.put(None, snapshot, &toolkit);
        toolkit
    }

    /// Waits until a viewer's tools differ from the snapshot `earlier`. Returns the new snapshot.
    pub async fn next(&self, view: &View, earlier: &Snapshot) -> Snapshot {
        loop {
            // Subscribe before taking the snapshot, so that no change is missed.
            let mut membership = self.membership.subscribe();
            let visible = |slot: &&SourceSlot| slot.scope == Scope::Global || view.sees(&slot.scope);
            let mut states: Vec<_> = self.lock().sources.iter().filter(visible).map(|slot| slot.state.clone()).collect();
            states.iter_mut().for_each(watch::Receiver::mark_unchanged);
            let now = self.snapshot(view);
            if !now.is_same(earlier) {
                return now;
            }
            // A source that has ended never changes again.
            let mut changes: Vec<BoxFuture<'_, ()>> = vec![Box::pin(std::future::pending())];
            for state in &mut states {
                changes.push(Box::pin(async {
                    if state.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }));
            }
            tokio::select! {
                _ = membership.changed() => {}
                _ = futures_util::future::select_all(changes) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn refresh_base(&mut self) {
        let global = |slot: &&mut SourceSlot| slot.scope == Scope::Global;
        // Not `any`: it would stop at the first change, and the other changes would count again later.
        let changes = self.sources.iter_mut().filter(global).map(SourceSlot::take_change).filter(|changed| *changed).count();
        if changes > 0 || std::mem::take(&mut self.stale) {
            let sources = self.sources.iter_mut().filter(global).map(|slot| (&*slot.source, &mut slot.state));
            self.base = Arc::new(Table::build(sources, None, &self.base));
        }
    }

    fn refresh_overlays(&mut self, view: &View) -> Vec<Arc<Table>> {
        let mut visible = Vec::new();
        for slot in self.sources.iter_mut().filter(|slot| view.sees(&slot.scope)) {
            let key = (slot.scope.clone(), slot.source.id().clone());
            let changed = slot.take_change();
            let known = self.overlays.get(&key);
            let overlay = match known {
                Some((base, overlay)) if !changed && Arc::ptr_eq(base, &self.base) => overlay.clone(),
                _ => {
                    let old = known.map(|(_, overlay)| overlay.clone()).unwrap_or_default();
                    let only = std::iter::once((&*slot.source, &mut slot.state));
                    let overlay = Arc::new(Table::build(only, Some(&self.base), &old));
                    self.overlays.insert(key, (self.base.clone(), overlay.clone()));
                    overlay
                }
            };
            visible.push(overlay);
        }
        visible
    }
}

/// Returns the error message for an unknown tool, with a suggestion.
pub(crate) fn unknown<'a>(name: &str, agent: Option<&str>, known: impl Iterator<Item = &'a str>) -> String {
    let shown = helve_core::printable::shorten(&helve_core::printable::escape_line(name), 80);
    let whose = agent.map(|agent| format!(" for agent `{agent}`")).unwrap_or_default();
    format!("there is no tool `{shown}`{whose}{}", suggest::did_you_mean(name, known))
}
