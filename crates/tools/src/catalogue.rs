//! All tools now known: sources in order, duplicates resolved, one consistent picture at a time.
//!
//! The picture for everyone (the base) is shared; what a device or a conversation brings lies over it. Pictures
//! are made when someone asks and something has changed, so a source that comes and goes costs nothing meanwhile.

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

pub use self::entry::{Entry, Reference};
pub use self::lookalike::Lookalike;
use self::snapshot::Table;
pub use self::snapshot::{Snapshot, SourceReport};
use self::toolkits::KnownToolkits;
use crate::set::ToolSet;
use crate::toolkit::{Selection, Toolkit, ToolkitError};

/// All tools now known. Cheap to clone; clones share.
#[derive(Clone)]
pub struct Catalogue {
    state: Arc<Mutex<State>>,
    /// Where [`Catalogue::register`] puts tools.
    own: Arc<ListSource>,
    /// Ticks whenever sources are added or removed.
    membership: Arc<watch::Sender<()>>,
}

/// Who looks at the catalogue: scoped sources show only to those they belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The device that is spoken with.
    pub device: Option<Arc<str>>,
    /// The conversation.
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

/// A source for those who see it. Two conversations may have sources of the same name, which are not the same source.
pub type SourceKey = (Scope, SourceId);

#[derive(Default)]
struct State {
    sources: Vec<Registered>,
    sets: Vec<ToolSet>,
    base: Arc<Table>,
    /// Pictures of single sources with a scope, made over the base whose address is kept beside them.
    overlays: HashMap<SourceKey, (Arc<Table>, Arc<Table>)>,
    /// Whether the base shows a source that is gone.
    stale: bool,
    toolkits: KnownToolkits,
}

struct Registered {
    rank: u32,
    source: Arc<dyn ToolSource>,
    scope: Scope,
    state: watch::Receiver<SourceState>,
    /// Whether the current pictures do not show it yet.
    fresh: bool,
    /// Whether it has ended, and its last state was seen.
    ended: bool,
}

impl Registered {
    fn take_change(&mut self) -> bool {
        // A source that ended says so only once more: its last word, which may be that it failed.
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
    /// An empty catalogue.
    #[must_use]
    pub fn new() -> Self {
        let own = Arc::new(ListSource::new("program", []));
        let catalogue = Self { state: Arc::default(), own: own.clone(), membership: Arc::default() };
        catalogue.add_source_at(0, own);
        catalogue
    }

    /// Adds one tool of this program: what `#[tool]` makes of a function, a closure with [`helve_core::tool_fn`], or a type that
    /// implements [`helve_core::TypedTool`], [`helve_core::Tool`] or [`helve_core::DynTool`].
    ///
    /// # Errors
    /// Where the tool's name, description or schema cannot be used; [`SpecError::Duplicate`] if the program registered a tool of this
    /// name before. A tool of another source may have the same name: the program's own tool is used.
    pub fn register<Kind>(&self, tool: impl IntoTool<Kind>) -> Result<(), SpecError> {
        self.own.add(tool.into_tool()?)
    }

    /// Adds several tools of this program, all or none: a value whose type has `#[tools]`, or a list, such as
    /// [`helve_core::function::linked`] gives.
    ///
    /// # Errors
    /// Where the name, description or schema of a tool cannot be used; [`SpecError::Duplicate`] if two tools of the program would have
    /// the same name.
    pub fn register_all<Kind>(&self, tools: impl IntoTools<Kind>) -> Result<(), SpecError> {
        self.own.add_all(tools.into_tools()?)
    }

    /// Adds a source behind those that are there; where names meet, the earlier source keeps them.
    pub fn add_source(&self, source: Arc<dyn ToolSource>) {
        self.add_source_at(u32::MAX, source);
    }

    /// Adds a source at a rank: behind those of the same or a lower one, before those of a higher.
    pub fn add_source_at(&self, rank: u32, source: Arc<dyn ToolSource>) {
        let registered = Registered { rank, scope: source.scope(), state: source.tools(), source, fresh: true, ended: false };
        let mut state = self.lock();
        let place = state.sources.partition_point(|known| known.rank <= rank);
        state.sources.insert(place, registered);
        drop(state);
        self.membership.send_replace(());
    }

    /// Removes a source and its tools.
    pub fn remove_source(&self, scope: &Scope, id: &SourceId) {
        let mut state = self.lock();
        state.sources.retain(|registered| registered.source.id() != id || registered.scope != *scope);
        state.overlays.remove(&(scope.clone(), id.clone()));
        state.stale = true;
        drop(state);
        self.membership.send_replace(());
    }

    /// What a viewer sees now. The picture never changes; ask again for a newer one.
    #[must_use]
    pub fn snapshot(&self, view: &View) -> Snapshot {
        let mut state = self.lock();
        state.refresh_base();
        let base = state.base.clone();
        let overlays = state.refresh_overlays(view);
        Snapshot::new(base, overlays)
    }

    /// A tool that everyone sees, by its name or the name that models use.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.snapshot(&View::default()).get(name).cloned()
    }

    /// The tools that everyone sees, in order.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Entry>> {
        self.snapshot(&View::default()).iter().cloned().collect()
    }

    /// Waits until no source is still connecting.
    pub async fn settled(&self) {
        loop {
            let connecting = self
                .lock()
                .sources
                .iter()
                .map(|registered| registered.state.clone())
                .find(|state| matches!(*state.borrow(), SourceState::Connecting));
            let Some(mut state) = connecting else { return };
            if state.wait_for(|state| !matches!(state, SourceState::Connecting)).await.is_err() {
                return;
            }
        }
    }

    /// Whether a tool of this name could still come: from a source that is not up now, or once a person agrees to it.
    #[must_use]
    pub fn may_appear(&self, name: &str) -> bool {
        self.lock().sources.iter().any(|registered| {
            let ready = matches!(*registered.state.borrow(), SourceState::Ready(_));
            (!ready && registered.source.may_bring(name)) || registered.source.withholds(name)
        })
    }

    /// Replaces all tool sets.
    pub fn replace_sets(&self, sets: Vec<ToolSet>) {
        let mut state = self.lock();
        state.sets = sets;
        state.toolkits.clear();
    }

    /// Defines a tool set; one of the same name is replaced.
    pub fn define_set(&self, set: ToolSet) {
        let mut state = self.lock();
        state.sets.retain(|known| known.name != set.name);
        state.sets.push(set);
        state.toolkits.clear();
    }

    /// All tool sets, in the order of their definition.
    #[must_use]
    pub fn sets(&self) -> Vec<ToolSet> {
        self.lock().sets.clone()
    }

    /// The tools of a set that everyone sees, in the set's order; nothing where there is no such set.
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

    /// Resolves what an agent may use, as seen now. While nothing changes, the same toolkit is given again.
    ///
    /// # Errors
    /// Where the selection names a set or a tool that no source can bring.
    pub fn toolkit(&self, selection: &Selection, view: &View) -> Result<Toolkit, ToolkitError> {
        let snapshot = self.snapshot(view);
        if let Some(known) = self.lock().toolkits.get(Some(selection), &snapshot) {
            return Ok(known);
        }
        let toolkit = Toolkit::resolve(selection, &self.sets(), &snapshot, |name| self.may_appear(name))?;
        self.lock().toolkits.put(Some(selection), snapshot, &toolkit);
        Ok(toolkit)
    }

    /// Every tool that a viewer sees now, for a person or a program that is no agent.
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

    /// Waits until a viewer sees something else than in an earlier snapshot, and gives the newer one.
    pub async fn next(&self, view: &View, earlier: &Snapshot) -> Snapshot {
        loop {
            // Watch first and look then, so that no change falls between.
            let mut membership = self.membership.subscribe();
            let visible = |registered: &&Registered| registered.scope == Scope::Global || view.sees(&registered.scope);
            let mut states: Vec<_> = self.lock().sources.iter().filter(visible).map(|registered| registered.state.clone()).collect();
            states.iter_mut().for_each(watch::Receiver::mark_unchanged);
            let now = self.snapshot(view);
            if !now.is_same(earlier) {
                return now;
            }
            // A source that has ended never changes again; the others wake us.
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
        let global = |registered: &&mut Registered| registered.scope == Scope::Global;
        // Not `any`: every source's change must be taken, or it would be seen as a change again.
        let changes = self.sources.iter_mut().filter(global).filter_map(|registered| registered.take_change().then_some(())).count();
        if changes > 0 || std::mem::take(&mut self.stale) {
            let sources = self.sources.iter_mut().filter(global).map(|registered| (&*registered.source, &mut registered.state));
            self.base = Arc::new(Table::build(sources, None, &self.base));
        }
    }

    fn refresh_overlays(&mut self, view: &View) -> Vec<Arc<Table>> {
        let mut visible = Vec::new();
        for registered in self.sources.iter_mut().filter(|registered| view.sees(&registered.scope)) {
            let key = (registered.scope.clone(), registered.source.id().clone());
            let changed = registered.take_change();
            let known = self.overlays.get(&key);
            let overlay = match known {
                Some((base, overlay)) if !changed && Arc::ptr_eq(base, &self.base) => overlay.clone(),
                _ => {
                    let old = known.map(|(_, overlay)| overlay.clone()).unwrap_or_default();
                    let only = std::iter::once((&*registered.source, &mut registered.state));
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

/// A sentence about a name that nobody knows, with the nearest that somebody does.
pub(crate) fn unknown<'a>(name: &str, agent: Option<&str>, known: impl Iterator<Item = &'a str>) -> String {
    let shown = helve_core::printable::shorten(&helve_core::printable::escape_line(name), 80);
    let whose = agent.map(|agent| format!(" for agent `{agent}`")).unwrap_or_default();
    format!("there is no tool `{shown}`{whose}{}", suggest::did_you_mean(name, known))
}
