//! All tools now known: sources in order, duplicates resolved, one consistent picture at a time.
//!
//! The picture for everyone (the base) is shared; what a device or a conversation brings lies over it. Pictures
//! are made when someone asks and something has changed, so a source that comes and goes costs nothing meanwhile.

mod entry;
mod snapshot;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve_core::{ConversationId, DynTool, IntoTool, ListSource, Scope, SourceId, SourceState, SpecError, ToolSource, suggest};
use tokio::sync::watch;

pub use self::entry::{Entry, Reference};
use self::snapshot::Table;
pub use self::snapshot::{Snapshot, SourceReport};
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

#[derive(Default)]
struct State {
    sources: Vec<Registered>,
    sets: Vec<ToolSet>,
    base: Arc<Table>,
    /// Pictures of single sources with a scope, made over the base whose address is kept beside them.
    overlays: HashMap<SourceId, (Arc<Table>, Arc<Table>)>,
}

struct Registered {
    source: Arc<dyn ToolSource>,
    scope: Scope,
    state: watch::Receiver<SourceState>,
    /// Whether the current pictures do not show it yet.
    fresh: bool,
}

impl Registered {
    fn take_change(&mut self) -> bool {
        let changed = self.fresh || self.state.has_changed().unwrap_or(false);
        self.fresh = false;
        changed
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
        catalogue.add_source(own);
        catalogue
    }

    /// Adds one tool of this program: a [`helve_core::Tool`], or what `#[tool]` makes of a function.
    ///
    /// # Errors
    /// Where the tool's name, description or schema cannot be used.
    pub fn register(&self, tool: impl IntoTool) -> Result<(), SpecError> {
        self.own.add(tool.into_tool()?);
        Ok(())
    }

    /// Adds tools of this program that are already erased, such as [`helve_core::function::linked`] gives.
    pub fn register_all(&self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) {
        for tool in tools {
            self.own.add(tool);
        }
    }

    /// Adds a source behind those that are there; where names meet, the earlier source keeps them.
    pub fn add_source(&self, source: Arc<dyn ToolSource>) {
        let registered = Registered { scope: source.scope(), state: source.tools(), source, fresh: true };
        self.lock().sources.push(registered);
        self.membership.send_replace(());
    }

    /// Removes a source and its tools.
    pub fn remove_source(&self, id: &SourceId) {
        let mut state = self.lock();
        state.sources.retain(|registered| registered.source.id() != id);
        state.overlays.remove(id);
        // The base is made anew, without it.
        for registered in &mut state.sources {
            registered.fresh |= registered.scope == Scope::Global;
        }
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

    /// Whether a source that is not up now could still bring a tool of this name.
    #[must_use]
    pub fn may_appear(&self, name: &str) -> bool {
        self.lock().sources.iter().any(|registered| {
            let ready = matches!(*registered.state.borrow(), SourceState::Ready(_));
            !ready && registered.source.may_bring(name)
        })
    }

    /// Replaces all tool sets.
    pub fn replace_sets(&self, sets: Vec<ToolSet>) {
        self.lock().sets = sets;
    }

    /// Defines a tool set; one of the same name is replaced.
    pub fn define_set(&self, set: ToolSet) {
        let mut state = self.lock();
        state.sets.retain(|known| known.name != set.name);
        state.sets.push(set);
    }

    /// All tool sets, in the order of their definition.
    #[must_use]
    pub fn sets(&self) -> Vec<ToolSet> {
        self.lock().sets.clone()
    }

    /// The tools of a set that everyone sees; nothing where there is no such set.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<Vec<Arc<Entry>>> {
        let set = self.lock().sets.iter().find(|set| *set.name == *name).cloned()?;
        let snapshot = self.snapshot(&View::default());
        Some(snapshot.iter().filter(|entry| set.tools.iter().any(|pattern| entry.is_named(pattern))).cloned().collect())
    }

    /// Resolves what an agent may use, as seen now.
    ///
    /// # Errors
    /// Where the selection names a set or a tool that no source can bring.
    pub fn toolkit(&self, selection: &Selection, view: &View) -> Result<Toolkit, ToolkitError> {
        let sets = self.sets();
        Toolkit::resolve(selection, &sets, &self.snapshot(view), |name| self.may_appear(name))
    }

    /// Waits until the next snapshot may differ from the last one.
    pub async fn changed(&self) {
        let mut membership = self.membership.subscribe();
        let mut states: Vec<_> = self.lock().sources.iter().map(|registered| registered.state.clone()).collect();
        let mut waits: Vec<_> = states.iter_mut().map(|state| Box::pin(async { state.changed().await.is_ok() })).collect();
        while !waits.is_empty() {
            tokio::select! {
                _ = membership.changed() => return,
                (changed, _, rest) = futures_util::future::select_all(std::mem::take(&mut waits)) => {
                    if changed {
                        return;
                    }
                    // The source is gone for good and will not change again.
                    waits = rest;
                }
            }
        }
        let _ = membership.changed().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn refresh_base(&mut self) {
        let global = |registered: &&mut Registered| registered.scope == Scope::Global;
        // Not `any`: every source's change must be taken, or it would be seen as a change again.
        let changes = self.sources.iter_mut().filter(global).filter_map(|registered| registered.take_change().then_some(())).count();
        if changes > 0 {
            let sources = self.sources.iter_mut().filter(global).map(|registered| (&*registered.source, &mut registered.state));
            self.base = Arc::new(Table::build(sources, None, &self.base));
        }
    }

    fn refresh_overlays(&mut self, view: &View) -> Vec<Arc<Table>> {
        let mut visible = Vec::new();
        for registered in self.sources.iter_mut().filter(|registered| view.sees(&registered.scope)) {
            let id = registered.source.id().clone();
            let changed = registered.take_change();
            let known = self.overlays.get(&id);
            let overlay = match known {
                Some((base, overlay)) if !changed && Arc::ptr_eq(base, &self.base) => overlay.clone(),
                _ => {
                    let old = known.map(|(_, overlay)| overlay.clone()).unwrap_or_default();
                    let only = std::iter::once((&*registered.source, &mut registered.state));
                    let overlay = Arc::new(Table::build(only, Some(&self.base), &old));
                    self.overlays.insert(id, (self.base.clone(), overlay.clone()));
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
    let shown = helve_core::printable::shorten(&helve_core::printable::escape(name), 80);
    let whose = agent.map(|agent| format!(" for agent `{agent}`")).unwrap_or_default();
    format!("there is no tool `{shown}`{whose}{}", suggest::did_you_mean(name, known))
}
