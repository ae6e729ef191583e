//! The store that lies in a project's folder, where earlier versions kept it, moves to the state folder once the folder is trusted.

use std::path::Path;

use helve_core::store::TaskFilter;
use helve_core::{Store, StoreError};
use helve_store::SqliteStore;

use super::capability::STORE;
use super::{Helve, NoStore};

impl Helve {
    /// Moves the store of a trusted folder to where it belongs, unless there is one that holds something.
    pub(super) async fn take_over(&self, file: &Path) -> Result<(), NoStore> {
        let report = self.project().unwrap_or_default();
        let Some(state) = self.state().filter(|state| file.starts_with(state.path("projects"))) else { return Ok(()) };
        let is_there = report.capabilities.iter().any(|capability| capability.file == STORE);
        if !is_there || report.waiting.contains(STORE) {
            return Ok(());
        }
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("the store {STORE} cannot be moved to the state folder: {error}");
            NoStore::new(message, "move it away to begin with a new one, or name it with --store")
        };
        let _lock = state.lock().map_err(|error| failed(&error))?;
        if file.exists() {
            if !is_empty(file).await.map_err(|error| failed(&error))? {
                tracing::warn!("the store {STORE} is not used: there is another one; `--store sqlite:{STORE}` shows it");
                return Ok(());
            }
            remove(file);
        }
        let old = report.root.join(STORE);
        let store = SqliteStore::open(&old).map_err(|error| failed(&error))?;
        store.backup(file).await.map_err(|error| failed(&error))?;
        drop(store);
        remove(&old);
        tracing::info!(store = %file.display(), "the store was moved to the state folder");
        Ok(())
    }
}

/// Whether nothing was ever written down in a store: listing what is in it makes one, too.
async fn is_empty(file: &Path) -> Result<bool, StoreError> {
    let store = SqliteStore::open(file)?;
    Ok(store.tasks(TaskFilter::default().unheard(false).limit(1)).await?.is_empty()
        && store.runs(None, 1).await?.is_empty()
        && store.approvals(None, false, 1).await?.is_empty()
        && store.conversations(1).await?.is_empty())
}

fn remove(store: &Path) {
    for ending in ["", "-wal", "-shm", "-lock"] {
        let mut name = store.as_os_str().to_owned();
        name.push(ending);
        let _ = std::fs::remove_file(name);
    }
}
