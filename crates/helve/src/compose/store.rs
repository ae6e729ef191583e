//! Opens the store: at the given address, at the address of a trusted project, or in the user's state folder. A store inside a
//! project folder is not trusted by itself: the author of the folder could have created it.

#[cfg(all(feature = "project", feature = "sqlite"))]
mod migrate;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::{Store, StoreError};
use helve_tools::StoreHandle;

use super::Helve;

#[cfg(feature = "project")]
const FILE: &str = "helve.db";

/// The error if the store cannot be opened, with a hint.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct OpenStoreError {
    /// The error message.
    pub message: String,
    /// A hint what to do next.
    pub hint: String,
}

impl OpenStoreError {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// The address of a store: a SQLite file or a PostgreSQL server.
#[derive(Debug, PartialEq)]
pub(super) enum StoreAddress {
    File(PathBuf),
    Server(String),
}

impl StoreAddress {
    fn parse(url: &str, base: &Path) -> Result<Self, OpenStoreError> {
        if let Some(file) = url.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            if file.trim().is_empty() {
                return Err(OpenStoreError::new(
                    format!("`{url}` has no file name"),
                    "write `sqlite:FILE`, such as `sqlite:.helve/helve.db`",
                ));
            }
            return Ok(Self::File(base.join(file)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Server(url.to_owned()));
        }
        Err(OpenStoreError::new("invalid store URL", "write `sqlite:FILE` or `postgres://…`"))
    }
}

impl Helve {
    /// Opens the store at `url` and uses it for runs, approvals and background calls. Without a URL, returns the store that is open, or
    /// opens the project's store.
    ///
    /// # Errors
    /// Returns an error with a hint if the store cannot be opened, or another one is open.
    pub async fn open_store(&self, url: Option<&str>) -> Result<StoreHandle, OpenStoreError> {
        if let Some(store) = self.executor.store() {
            if url.is_some() && self.opened.get() != Some(&self.store_address(url)?) {
                let message = "another store is already open, and a Helve has only one";
                return Err(OpenStoreError::new(message, "use the open store, or build another Helve"));
            }
            return Ok(store.clone());
        }
        let address = self.store_address(url)?;
        #[cfg(all(feature = "project", feature = "sqlite"))]
        if let StoreAddress::File(file) = &address {
            self.migrate_store(file).await?;
        }
        let store = open(&address).await.map_err(|error| explain(&address, &error))?;
        let store = StoreHandle::new(store);
        self.executor.use_store(store.clone()).map_err(|error| OpenStoreError::new(error.to_string(), "open the store once"))?;
        let _ = self.opened.set(address);
        #[cfg(feature = "project")]
        self.notify_webhook(&store);
        Ok(store)
    }

    #[cfg(not(feature = "project"))]
    fn store_address(&self, url: Option<&str>) -> Result<StoreAddress, OpenStoreError> {
        let url = url.ok_or_else(|| OpenStoreError::new("no store is configured", "set a store URL, such as `sqlite:helve.db`"))?;
        StoreAddress::parse(url, Path::new("."))
    }

    #[cfg(feature = "project")]
    fn store_address(&self, url: Option<&str>) -> Result<StoreAddress, OpenStoreError> {
        let of_environment = helve_core::environment::var("HELVE_STORE").filter(|url| !url.trim().is_empty());
        if let Some(url) = url.map(str::to_owned).or(of_environment) {
            return StoreAddress::parse(&url, Path::new("."));
        }
        let report = self.project().unwrap_or_default();
        // Only set in a trusted folder: otherwise the setting does not pass the gate.
        if let Some(url) = &report.store {
            return StoreAddress::parse(url, &report.root);
        }
        if report.sealed.iter().any(|(_, field)| field == "store") {
            tracing::warn!("`store` in helve.yaml is not used: the folder is not trusted; review it with `helve trust`");
        }
        let nowhere = || OpenStoreError::new("no store is configured", "set a store URL with --store, such as `sqlite:helve.db`");
        let state = self.state().ok_or_else(nowhere)?;
        if !report.is_project {
            return Ok(StoreAddress::File(state.path(FILE)));
        }
        let folder = state.folder_of(&report.root);
        let folder =
            folder.map_err(|error| OpenStoreError::new(error.to_string(), "set another store with --store, such as `sqlite:helve.db`"))?;
        Ok(StoreAddress::File(folder.join(FILE)))
    }
}

async fn open(address: &StoreAddress) -> Result<Arc<dyn Store>, StoreError> {
    match address {
        #[cfg(feature = "sqlite")]
        StoreAddress::File(file) => Ok(Arc::new(helve_store::SqliteStore::open(file)?)),
        #[cfg(feature = "postgres")]
        StoreAddress::Server(url) => Ok(Arc::new(helve_store::PostgresStore::open(url).await?)),
        #[allow(unreachable_patterns, reason = "some features leave a kind of store out")]
        _ => Err(StoreError::Unavailable("this program was built without the feature `sqlite` or `postgres` for this store".to_owned())),
    }
}

fn explain(address: &StoreAddress, error: &StoreError) -> OpenStoreError {
    let hint = match (address, error) {
        (_, StoreError::Version(_)) => "use the version of Helve that wrote the store, or set another store with --store",
        (StoreAddress::File(_), StoreError::Damaged(_)) => "move the file away, or restore a copy made by `helve backup`",
        (StoreAddress::File(_), _) => "check that the folder of the store is writable, or set another store with --store",
        (StoreAddress::Server(_), StoreError::Conflict(_)) => "check the URL in --store, HELVE_STORE or `store:` in helve.yaml",
        (StoreAddress::Server(_), _) => "check that the PostgreSQL server is reachable",
    };
    OpenStoreError::new(error.to_string(), hint)
}

#[cfg(all(test, feature = "project"))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_files_or_servers() {
        let base = Path::new("/project");
        let file = |name: &str| StoreAddress::File(base.join(name));
        assert_eq!(StoreAddress::parse("sqlite:.helve/x.db", base).ok(), Some(file(".helve/x.db")));
        assert_eq!(StoreAddress::parse("sqlite:///tmp/x.db", base).ok(), Some(StoreAddress::File("/tmp/x.db".into())));
        assert!(matches!(StoreAddress::parse("postgres://db/x", base), Ok(StoreAddress::Server(_))));
        for wrong in ["", "sqlite:", "mysql://x", "helve.db"] {
            let error = StoreAddress::parse(wrong, base).expect_err(wrong);
            assert!(error.hint.contains("sqlite:"), "{wrong}: {error}");
        }
    }
}
