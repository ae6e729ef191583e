//! Immutable snapshots of the catalogue.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::{DynTool, SourceId, SourceState, ToolList, ToolSource};
use tokio::sync::watch;

use super::SourceKey;
use super::entry::{DuplicateTool, Entry};

/// The tools of some sources, in order, without duplicates.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Arc<Entry>>,
    /// The index of each entry, by its name and by its model name.
    by_name: HashMap<Arc<str>, usize>,
    reports: Vec<SourceReport>,
}

/// The state of a source in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReport {
    /// The id of the source.
    pub source: SourceId,
    /// Why the source has no tools now; `None` if it is ready.
    pub error: Option<Arc<str>>,
    /// Tools that are not offered because an earlier source has a tool of the same name.
    pub displaced: Vec<DisplacedTool>,
}

/// A tool that is not offered because an earlier source has a tool of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplacedTool {
    /// The name of the tool.
    pub name: Arc<str>,
    /// The file and line of the tool's definition, if known.
    pub location: Option<Arc<str>>,
    /// The source whose tool is offered.
    pub by: SourceId,
}

impl Table {
    /// Builds the table of some sources. A tool whose name is already in the base is displaced. Unchanged entries are taken from the old
    /// table, so that data cached for them stays valid.
    pub(super) fn build<'a>(
        sources: impl Iterator<Item = (&'a dyn ToolSource, &'a mut watch::Receiver<SourceState>)>,
        base: Option<&Self>,
        old: &Self,
    ) -> Self {
        let mut draft = Draft { base, ..Draft::default() };
        let mut reports = Vec::new();
        for (source, state) in sources {
            let state = state.borrow_and_update().clone();
            let (tools, error) = match state {
                SourceState::Ready(tools) => (tools, None),
                SourceState::Connecting => (ToolList::default(), Some("still connecting".into())),
                SourceState::Failed(why) => (ToolList::default(), Some(why)),
            };
            let displaced = tools.as_slice().iter().filter_map(|tool| draft.add(tool, &(source.scope(), source.id().clone()))).collect();
            reports.push(SourceReport { source: source.id().clone(), error, displaced });
        }
        draft.finish(reports, old)
    }

    fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.by_name.get(name).map(|index| &self.entries[*index])
    }
}

#[derive(Default)]
struct Draft<'a> {
    base: Option<&'a Table>,
    found: Vec<(Arc<dyn DynTool>, SourceKey, Vec<DuplicateTool>)>,
    by_name: HashMap<Arc<str>, usize>,
}

impl Draft<'_> {
    /// Adds a tool. Returns the displaced tool instead if an earlier tool has the same name.
    fn add(&mut self, tool: &Arc<dyn DynTool>, source: &SourceKey) -> Option<DisplacedTool> {
        let name = tool.spec().name();
        let mapped = crate::names::model_name(name);
        let displaced =
            |by: &SourceId| DisplacedTool { name: name.clone(), location: tool.spec().origin().location.clone(), by: by.clone() };
        if let Some(earlier) = self.base.and_then(|base| base.get(name).or_else(|| base.get(&mapped))) {
            return Some(displaced(earlier.source()));
        }
        if let Some(index) = self.by_name.get(&**name).or_else(|| self.by_name.get(&*mapped)) {
            let (_, (_, by), duplicates) = &mut self.found[*index];
            duplicates.push(DuplicateTool::new(&**tool, &source.1));
            return Some(displaced(by));
        }
        let index = self.found.len();
        if mapped != **name {
            self.by_name.insert(mapped.into(), index);
        }
        self.by_name.insert(name.clone(), index);
        self.found.push((tool.clone(), source.clone(), Vec::new()));
        None
    }

    fn finish(self, reports: Vec<SourceReport>, old: &Table) -> Table {
        let unchanged = |tool: &Arc<dyn DynTool>, source: &SourceKey, duplicates: &[DuplicateTool]| {
            let entry = old.get(tool.spec().name())?;
            (Arc::ptr_eq(entry.tool(), tool) && entry.source_key() == source && entry.duplicates() == duplicates).then(|| entry.clone())
        };
        let entries = self.found.into_iter().map(|(tool, source, duplicates)| {
            unchanged(&tool, &source, &duplicates).unwrap_or_else(|| Arc::new(Entry::new(tool, source, duplicates)))
        });
        Table { entries: entries.collect(), by_name: self.by_name, reports }
    }
}

/// The tools that one viewer sees at one point in time. Immutable.
#[derive(Clone)]
pub struct Snapshot {
    base: Arc<Table>,
    overlays: Arc<[Arc<Table>]>,
}

impl Snapshot {
    pub(super) fn new(base: Arc<Table>, overlays: Vec<Arc<Table>>) -> Self {
        Self { base, overlays: overlays.into() }
    }

    fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        std::iter::once(&self.base).chain(self.overlays.iter())
    }

    /// Returns a tool by its name or its model name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.tables().find_map(|table| table.get(name))
    }

    /// Returns all tools, those for everyone first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        // Overlays are built on the base, but not on each other, so two overlays may contain the same name.
        let several = self.overlays.len() > 1;
        let first = move |entry: &Arc<Entry>, name: &str| self.get(name).is_some_and(|first| Arc::ptr_eq(first, entry));
        let stays = move |entry: &&Arc<Entry>| !several || (first(entry, entry.name()) && first(entry, entry.model_name()));
        self.tables().flat_map(|table| &table.entries).filter(stays)
    }

    /// Returns whether `other` is the same snapshot, or an unchanged later one.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(one, two): (&Arc<Table>, &Arc<Table>)| Arc::ptr_eq(one, two);
        self.overlays.len() == other.overlays.len() && self.tables().zip(other.tables()).all(same)
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns whether there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the state of each source.
    pub fn sources(&self) -> impl Iterator<Item = &SourceReport> {
        self.tables().flat_map(|table| &table.reports)
    }
}
