//! Where the store is: what a person wrote, what a trusted project says, or the user's state folder. A store that lies in a project's
//! folder is not believed for lying there: whoever made the folder could have written it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::{Store, StoreError};
use helve_tools::StoreHandle;

use super::Helve;

#[cfg(feature = "project")]
const FILE: &str = "helve.db";

/// Why there is no store, and what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct NoStore {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl NoStore {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// A store's address.
#[derive(Debug, PartialEq)]
pub(super) enum Place {
    File(PathBuf),
    Server(String),
}

impl Place {
    fn read(url: &str, base: &Path) -> Result<Self, NoStore> {
        if let Some(file) = url.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            if file.trim().is_empty() {
                return Err(NoStore::new(format!("`{url}` names no file"), "write `sqlite:FILE`, such as `sqlite:.helve/helve.db`"));
            }
            return Ok(Self::File(base.join(file)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Server(url.to_owned()));
        }
        Err(NoStore::new("the store's address cannot be understood", "write `sqlite:FILE` or `postgres://…`"))
    }
}

impl Helve {
    /// Opens the store, and accepts background calls into it. Without an address, returns the store that is already open.
    ///
    /// # Errors
    /// Where it cannot be used, or another one is open; says what to do.
    pub async fn open_store(&self, url: Option<&str>) -> Result<StoreHandle, NoStore> {
        if let Some(store) = self.executor.store() {
            if url.is_some() && self.opened.get() != Some(&self.place(url)?) {
                let message = "another store is open already: calls and runs must be in one";
                return Err(NoStore::new(message, "use that one, or put another Helve together"));
            }
            return Ok(store.clone());
        }
        let place = self.place(url)?;
        #[cfg(all(feature = "project", feature = "sqlite"))]
        if let Place::File(file) = &place {
            self.take_over(file).await?;
        }
        let store = open(&place).await.map_err(|error| unusable(&place, &error))?;
        let store = StoreHandle::new(store);
        self.executor.use_store(store.clone()).map_err(|error| NoStore::new(error.to_string(), "open the store once"))?;
        let _ = self.opened.set(place);
        #[cfg(feature = "project")]
        self.tell_webhook(&store);
        Ok(store)
    }

    #[cfg(not(feature = "project"))]
    fn place(&self, url: Option<&str>) -> Result<Place, NoStore> {
        let url = url.ok_or_else(|| NoStore::new("nobody says where the store is", "name it, such as `sqlite:helve.db`"))?;
        Place::read(url, Path::new("."))
    }

    #[cfg(feature = "project")]
    fn place(&self, url: Option<&str>) -> Result<Place, NoStore> {
        let of_environment = helve_core::environment::var("HELVE_STORE").filter(|url| !url.trim().is_empty());
        if let Some(url) = url.map(str::to_owned).or(of_environment) {
            return Place::read(&url, Path::new("."));
        }
        let report = self.project().unwrap_or_default();
        // A folder that is not trusted has no say in it: the setting does not pass the gate.
        if let Some(url) = &report.store {
            return Place::read(url, &report.root);
        }
        if report.sealed.iter().any(|(_, field)| field == "store") {
            tracing::warn!("`store` in helve.yaml is not used because the folder is not trusted; `helve trust` shows why");
        }
        let nowhere = || NoStore::new("there is no place for the store", "name one with --store, such as `sqlite:helve.db`");
        let state = self.state().ok_or_else(nowhere)?;
        if !report.is_project {
            return Ok(Place::File(state.path(FILE)));
        }
        let folder = state.folder_of(&report.root);
        let folder =
            folder.map_err(|error| NoStore::new(error.to_string(), "name another place with --store, such as `sqlite:helve.db`"))?;
        Ok(Place::File(folder.join(FILE)))
    }
}

async fn open(place: &Place) -> Result<Arc<dyn Store>, StoreError> {
    match place {
        #[cfg(feature = "sqlite")]
        Place::File(file) => Ok(Arc::new(helve_store::SqliteStore::open(file)?)),
        #[cfg(feature = "postgres")]
        Place::Server(url) => Ok(Arc::new(helve_store::PostgresStore::open(url).await?)),
        #[allow(unreachable_patterns, reason = "some features leave a kind of store out")]
        _ => Err(StoreError::Unavailable("this program was built without the feature for such a store: `sqlite` or `postgres`".to_owned())),
    }
}

fn unusable(place: &Place, error: &StoreError) -> NoStore {
    let hint = match (place, error) {
        (_, StoreError::Version(_)) => "use the Helve that wrote it, or name another store with --store",
        (Place::File(_), StoreError::Damaged(_)) => "put the file aside, or restore a copy that `helve backup` made",
        (Place::File(_), _) => "see that its folder can be written, or name another store with --store",
        (Place::Server(_), StoreError::Conflict(_)) => "see how --store, HELVE_STORE or `store:` in helve.yaml is written",
        (Place::Server(_), _) => "see that the server can be reached",
    };
    NoStore::new(error.to_string(), hint)
}

#[cfg(all(test, feature = "project"))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_files_or_servers() {
        let base = Path::new("/project");
        let file = |name: &str| Place::File(base.join(name));
        assert_eq!(Place::read("sqlite:.helve/x.db", base).ok(), Some(file(".helve/x.db")));
        assert_eq!(Place::read("sqlite:///tmp/x.db", base).ok(), Some(Place::File("/tmp/x.db".into())));
        assert!(matches!(Place::read("postgres://db/x", base), Ok(Place::Server(_))));
        for wrong in ["", "sqlite:", "mysql://x", "helve.db"] {
            let error = Place::read(wrong, base).expect_err(wrong);
            assert!(error.hint.contains("sqlite:"), "{wrong}: {error}");
        }
    }
}
