//! A cache of resolved toolkits. Every call needs a toolkit, but few of them differ.

use super::Snapshot;
use crate::toolkit::{Selection, Toolkit};

/// Maximum number of cached toolkits.
const MAX_TOOLKITS: usize = 64;

/// The most recently resolved toolkits, newest last.
#[derive(Default)]
pub(super) struct ToolkitCache(Vec<CachedToolkit>);

struct CachedToolkit {
    /// The selection that was resolved; `None` for all tools.
    selection: Option<Selection>,
    snapshot: Snapshot,
    toolkit: Toolkit,
}

impl ToolkitCache {
    pub(super) fn get(&self, selection: Option<&Selection>, snapshot: &Snapshot) -> Option<Toolkit> {
        let fits = |known: &&CachedToolkit| known.snapshot.is_same(snapshot) && known.selection.as_ref() == selection;
        self.0.iter().rev().find(fits).map(|known| known.toolkit.clone())
    }

    pub(super) fn put(&mut self, selection: Option<&Selection>, snapshot: Snapshot, toolkit: &Toolkit) {
        // Replace the same selection of an older snapshot, because it would keep removed tools alive.
        if let Some(index) = self.0.iter().position(|known| known.selection.as_ref() == selection) {
            self.0.remove(index);
        } else if self.0.len() >= MAX_TOOLKITS {
            self.0.remove(0);
        }
        self.0.push(CachedToolkit { selection: selection.cloned(), snapshot, toolkit: toolkit.clone() });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
