//! Takes digests of a command's scripts when the command is loaded, and detects changes before the command starts.
//!
//! The check runs immediately before the start. A change in the microseconds between the check and the start is not detected, because
//! the file is opened a second time to run it. This cannot be avoided: an interpreter opens its script by path, and a path such as
//! `/dev/fd/3` would break scripts that use `$0` or `__file__`. Nor would executing the open file help for a program that the system
//! opens, because a user who may replace the file may also write to it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::{Denial, Digest, Digester, ToolError, printable};
use rustix::fs::{Mode, OFlags};

use crate::CommandLine;

/// Maximum size in bytes of a file whose content is checked. Of a larger file, Helve checks only that it exists.
pub(crate) const MAX_BYTES: u64 = 256 << 20;
/// Total size in bytes above which scripts are hashed on a blocking thread, so that other calls are not delayed.
const LARGE: u64 = 256 << 10;

/// Snapshot of a command's scripts at the time the command was loaded.
#[derive(Debug, Clone)]
pub struct Scripts(Arc<LoadedScripts>);

#[derive(Debug)]
struct LoadedScripts {
    words: Vec<String>,
    env: Vec<String>,
    folder: Option<String>,
    project: PathBuf,
    files: Vec<(PathBuf, Option<Digest>)>,
}

impl Scripts {
    /// Takes a snapshot of the scripts of a command in the folder `project`.
    #[must_use]
    pub fn load(line: &CommandLine<'_>, project: &Path) -> Self {
        Self(Arc::new(LoadedScripts {
            words: line.words.to_vec(),
            env: line.env.to_vec(),
            folder: line.folder.map(ToOwned::to_owned),
            project: project.to_owned(),
            files: read(line, project),
        }))
    }

    /// Returns the files and their digests at loading. The digest is `None` if the file was unreadable or very large.
    #[must_use]
    pub fn files(&self) -> &[(PathBuf, Option<Digest>)] {
        &self.0.files
    }

    /// Checks that the scripts have not changed. Call this immediately before the command starts.
    ///
    /// # Errors
    /// Returns an error of the kind `permission_denied` if a file was changed, removed or added.
    pub async fn check(&self) -> Result<(), ToolError> {
        let size: u64 = self.0.files.iter().filter_map(|(file, _)| file.metadata().ok()).map(|metadata| metadata.len()).sum();
        if size <= LARGE {
            return self.compare();
        }
        let scripts = self.clone();
        let comparing = tokio::task::spawn_blocking(move || scripts.compare());
        comparing.await.unwrap_or_else(|error| {
            let command = self.0.words.join(" ");
            Err(ToolError::failed(format!("cannot check the scripts of `{command}` for changes: {error}")))
        })
    }

    fn compare(&self) -> Result<(), ToolError> {
        let LoadedScripts { words, env, folder, project, files } = &*self.0;
        let now = read(&CommandLine { words, env, folder: folder.as_deref() }, project);
        if now == *files {
            return Ok(());
        }
        let find =
            |files: &[(PathBuf, Option<Digest>)], path: &Path| files.iter().find(|(known, _)| known == path).map(|(_, digest)| *digest);
        let mut paths = files.iter().chain(&now).map(|(path, _)| path.as_path());
        let Some(path) = paths.find(|path| find(files, path) != find(&now, path)) else { return Ok(()) };
        let what = match (find(files, path), find(&now, path)) {
            (_, None) => "was removed",
            (None, _) => "was added",
            _ => "was changed",
        };
        let name = printable::escape_line(&path.strip_prefix(project).unwrap_or(path).to_string_lossy());
        let message =
            format!("the file `{name}` {what} after this tool was loaded, so the tool did not run; `helve trust` shows what would run now");
        Err(ToolError::denied(Denial::Policy, message))
    }
}

fn read(line: &CommandLine<'_>, project: &Path) -> Vec<(PathBuf, Option<Digest>)> {
    line.scripts(project).into_iter().map(|script| (script.clone(), script_digest(&script))).collect()
}

/// Returns the digest of a script, or `None` if the file is unreadable, not a regular file, or very large.
#[must_use]
pub fn script_digest(script: &Path) -> Option<Digest> {
    // The path may now be something else, such as a pipe without a writer, which must not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(script, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    let mut digester = Digester::default();
    let count = std::io::copy(&mut file.take(MAX_BYTES + 1), &mut digester).ok()?;
    (count <= MAX_BYTES).then(|| digester.finish())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use helve_core::ErrorKind;
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn any_change_is_refused_and_a_way_back_is_not() {
        let project = TempDir::new().expect("a folder");
        let at = |file: &str| project.path().join(file);
        for (file, text) in [("a.sh", "a"), ("large", "l")] {
            fs::write(at(file), text).expect("a file");
        }
        let words = ["sh", "a.sh", "b.sh", "large"].map(ToOwned::to_owned);
        let scripts = Scripts::load(&CommandLine { words: &words, env: &[], folder: None }, project.path());
        assert_eq!(scripts.files().len(), 2);
        let said = async || scripts.check().await.expect_err("refused");
        assert!(scripts.check().await.is_ok());
        let facts = fs::metadata(at("a.sh")).expect("a file");
        fs::write(at("a.sh"), "b").expect("a file");
        File::options().write(true).open(at("a.sh")).and_then(|file| file.set_modified(facts.modified()?)).expect("a time");
        let error = said().await;
        assert!(error.kind() == ErrorKind::PermissionDenied && error.message().starts_with("the file `a.sh` was changed"), "{error}");
        assert_eq!(error.details()["reason"], "policy");
        fs::remove_file(at("a.sh")).expect("a file");
        assert!(said().await.message().starts_with("the file `a.sh` was removed"));
        assert!(Command::new("mkfifo").arg(at("a.sh")).status().is_ok_and(|status| status.success()));
        assert_eq!(script_digest(&at("a.sh")), None, "it does not wait for a writer");
        fs::remove_file(at("a.sh")).expect("a file");
        fs::write(at("a.sh"), "a").expect("a file");
        assert!(scripts.check().await.is_ok());
        fs::write(at("b.sh"), "b").expect("a file");
        assert!(said().await.message().starts_with("the file `b.sh` was added"));
        fs::remove_file(at("b.sh")).expect("a file");
        fs::write(at("large"), vec![0; 1 << 20]).expect("a file");
        assert!(said().await.message().starts_with("the file `large` was changed"));
    }
}
