//! Caches the layers of each tool that was called.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use helve_core::DynLayer;
use parking_lot::RwLock;

use crate::catalogue::Entry;

/// The layers of one tool, outermost first.
pub(super) type Chain = Arc<[Arc<dyn DynLayer>]>;

/// The chains by the id of their entry. When an entry of a changing source is dropped, its chain is dropped later.
#[derive(Default)]
pub(super) struct Chains(RwLock<ChainMap>);

#[derive(Default)]
struct ChainMap {
    by_entry: HashMap<u64, (Weak<Entry>, Chain)>,
    sweep_at: usize,
}

impl Chains {
    pub(super) fn get(&self, entry: &Arc<Entry>, build: impl FnOnce() -> Vec<Arc<dyn DynLayer>>) -> Chain {
        if let Some((_, chain)) = self.0.read().by_entry.get(&entry.id()) {
            return chain.clone();
        }
        let chain: Chain = build().into();
        let mut chains = self.0.write();
        if chains.by_entry.len() >= chains.sweep_at {
            chains.by_entry.retain(|_, (entry, _)| entry.strong_count() > 0);
            chains.sweep_at = (chains.by_entry.len() * 2).max(256);
        }
        chains.by_entry.insert(entry.id(), (Arc::downgrade(entry), chain.clone()));
        chain
    }
}
