//! Moves a store from the project folder, where earlier versions kept it, to the state folder, once the folder is trusted.

use std::path::Path;

use helve_core::store::TaskFilter;
use helve_core::{Store, StoreError};
use helve_store::SqliteStore;

use super::OpenStoreError;
use crate::compose::Helve;
use crate::compose::project::STORE;

impl Helve {
    /// Moves the store of a trusted folder to the state folder, unless a store with contents is there.
    pub(super) async fn migrate_store(&self, file: &Path) -> Result<(), OpenStoreError> {
        let report = self.project().unwrap_or_default();
        let Some(state) = self.state().filter(|state| file.starts_with(state.path("projects"))) else { return Ok(()) };
        let is_there = report.capabilities.iter().any(|capability| capability.file == STORE);
        if !is_there || report.waiting.contains(STORE) {
            return Ok(());
        }
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("cannot move the store {STORE} to the state folder: {error}");
            OpenStoreError::new(message, "move the file away to start with a new store, or open it with --store")
        };
        let _lock = state.lock().map_err(|error| failed(&error))?;
        if file.exists() {
            if !is_empty(file).await.map_err(|error| failed(&error))? {
                tracing::warn!("the store {STORE} is not used: the project has another one; open it with `--store sqlite:{STORE}`");
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

/// Returns whether a store is empty. Listing runs also creates a store, so an empty one may be replaced.
async fn is_empty(file: &Path) -> Result<bool, StoreError> {
    let store = SqliteStore::open(file)?;
    Ok(store.tasks(TaskFilter::default().unread(false).limit(1)).await?.is_empty()
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
