//! Toolkits that were resolved from a snapshot. Every call of an agent, a client or a person needs one, and few of them differ.

use super::Snapshot;
use crate::toolkit::{Selection, Toolkit};

/// How many are remembered. More agents than that with tools of their own resolve them again.
const REMEMBERED: usize = 64;

/// What was resolved lately, the last one used at the end.
#[derive(Default)]
pub(super) struct KnownToolkits(Vec<Known>);

struct Known {
    /// `None` stands for every tool.
    selection: Option<Selection>,
    snapshot: Snapshot,
    toolkit: Toolkit,
}

impl KnownToolkits {
    pub(super) fn get(&self, selection: Option<&Selection>, snapshot: &Snapshot) -> Option<Toolkit> {
        let fits = |known: &&Known| known.snapshot.is_same(snapshot) && known.selection.as_ref() == selection;
        self.0.iter().rev().find(fits).map(|known| known.toolkit.clone())
    }

    pub(super) fn put(&mut self, selection: Option<&Selection>, snapshot: Snapshot, toolkit: &Toolkit) {
        // One of the same selection is probably of an older snapshot, and holds tools that are gone.
        if let Some(place) = self.0.iter().position(|known| known.selection.as_ref() == selection) {
            self.0.remove(place);
        } else if self.0.len() >= REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(Known { selection: selection.cloned(), snapshot, toolkit: toolkit.clone() });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
