//! Tools whose names are easily taken for each other, by people and by models.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::fmt;
use std::sync::Arc;

use helve_core::lookalike::{skeleton, written_out};

use super::entry::Entry;
use super::snapshot::Snapshot;

/// A tool that could be taken for one that was there before it.
#[derive(Debug, Clone)]
pub struct Lookalike {
    /// The tool.
    pub tool: Arc<Entry>,
    /// What it looks like.
    pub original: Arc<Entry>,
}

impl fmt::Display for Lookalike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tool, original] = [&self.tool, &self.original].map(|entry| (written_out(entry.name()), entry.source()));
        write!(f, "the tool `{}` of `{}` looks like `{}` of `{}`", tool.0, tool.1, original.0, original.1)
    }
}

impl Snapshot {
    /// Tools whose names look like those of others: as a whole, or, where letters of other alphabets are in it, behind a prefix.
    #[must_use]
    pub fn lookalikes(&self) -> Vec<Lookalike> {
        let mut originals = HashMap::<String, &Arc<Entry>>::new();
        let (mut found, mut foreign) = (Vec::new(), Vec::new());
        for entry in self.iter() {
            match originals.entry(skeleton(entry.name())) {
                Place::Occupied(original) => found.push(Lookalike { tool: entry.clone(), original: (*original.get()).clone() }),
                Place::Vacant(place) => {
                    if !entry.name().is_ascii() {
                        foreign.push((entry, place.key().clone()));
                    }
                    place.insert(entry);
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
