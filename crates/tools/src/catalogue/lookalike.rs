//! Finds tools whose names people and models easily confuse.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::fmt;
use std::sync::Arc;

use helve_core::lookalike::{skeleton, written_out};

use super::entry::Entry;
use super::snapshot::Snapshot;

/// A tool whose name looks like the name of an earlier tool.
#[derive(Debug, Clone)]
pub struct Lookalike {
    /// The tool with the confusable name.
    pub tool: Arc<Entry>,
    /// The earlier tool with a similar name.
    pub original: Arc<Entry>,
}

impl fmt::Display for Lookalike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tool, original] = [&self.tool, &self.original].map(|entry| (written_out(entry.name()), entry.source()));
        write!(f, "the tool `{}` of `{}` looks like `{}` of `{}`", tool.0, tool.1, original.0, original.1)
    }
}

impl Snapshot {
    /// Returns the tools whose names look like those of earlier tools. Names with non-ASCII letters are also compared without a prefix.
    #[must_use]
    pub fn lookalikes(&self) -> Vec<Lookalike> {
        let mut originals = HashMap::<String, &Arc<Entry>>::new();
        let (mut found, mut foreign) = (Vec::new(), Vec::new());
        for entry in self.iter() {
            match originals.entry(skeleton(entry.name())) {
                MapEntry::Occupied(original) => found.push(Lookalike { tool: entry.clone(), original: (*original.get()).clone() }),
                MapEntry::Vacant(vacant) => {
                    if !entry.name().is_ascii() {
                        foreign.push((entry, vacant.key().clone()));
                    }
                    vacant.insert(entry);
                }
            }
        }
        for (entry, shape) in foreign {
            let ends = shape.char_indices().filter(|(_, character)| *character == '_').map(|(at, _)| &shape[at + 1..]);
            let mut imitated = ends.filter_map(|end| originals.get(end).copied());
            let is_same =
                |original: &&Arc<Entry>| entry.name().strip_suffix(&**original.name()).is_some_and(|before| before.ends_with('_'));
            if let Some(original) = imitated.find(|original| !is_same(original)) {
                found.push(Lookalike { tool: entry.clone(), original: original.clone() });
            }
        }
        found
    }
}
