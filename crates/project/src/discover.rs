//! Finds the files of a project by their location in its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Severity};

/// Maximum number of files that are read from one folder.
const MAX_FILES: usize = 10_000;

/// The kind of a project file: what it defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `helve.yaml`.
    Config,
    /// A command tool.
    Command,
    /// An HTTP tool, or an OpenAPI import.
    Native,
    /// An MCP server, or a remote tool server with an `/execute` endpoint.
    Mcp,
    /// A tool set.
    Set,
    /// An agent.
    Agent,
}

/// The folders that are searched, with the kind of their files.
pub(crate) const FOLDERS: [(FileKind, &str); 6] = [
    (FileKind::Command, "tools/builtin"),
    (FileKind::Native, "tools/native"),
    (FileKind::Mcp, "tools/mcp"),
    (FileKind::Set, "tool_sets"),
    (FileKind::Set, "configs/tool_sets"),
    (FileKind::Agent, "agents"),
];

/// Possible names of the settings file. Only the first one that exists is read.
pub(crate) const CONFIGS: [&str; 2] = ["helve.yaml", "helve.yml"];

/// A project folder and its files.
#[derive(Debug, Clone)]
pub struct ProjectFolder {
    /// The canonical path of the folder.
    pub root: PathBuf,
    /// The files, relative to the folder, in order of precedence.
    pub files: Vec<(FileKind, Arc<str>)>,
    /// Diagnostics about folders that could not be read.
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds the files of a project.
///
/// # Errors
/// Returns an error if the folder does not exist or is not a directory.
pub fn discover(root: &Path) -> std::io::Result<ProjectFolder> {
    let root = root.canonicalize()?;
    if !root.is_dir() {
        return Err(std::io::Error::new(std::io::ErrorKind::NotADirectory, "not a directory"));
    }
    let mut found = ProjectFolder { root, files: Vec::new(), diagnostics: Vec::new() };
    let settings: Vec<_> = CONFIGS.into_iter().filter(|name| found.root.join(name).symlink_metadata().is_ok()).collect();
    found.files.extend(settings.first().map(|name| (FileKind::Config, (*name).into())));
    if let [used, unused] = settings[..] {
        let diagnostic = Diagnostic::in_file(Severity::Error, &unused.into(), format!("ignored because {used} exists"));
        found.diagnostics.push(diagnostic.hint(format!("move the contents of {unused} to {used}, then delete {unused}")));
    }
    for (kind, folder) in FOLDERS {
        found.search(kind, folder);
    }
    Ok(found)
}

impl ProjectFolder {
    fn search(&mut self, kind: FileKind, folder: &str) {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                let message = format!("cannot read folder: {error}");
                return self.diagnostics.push(Diagnostic::in_file(Severity::Error, &folder.into(), message));
            }
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|name| !name.starts_with('.') && (has_ending(name, "yaml") || has_ending(name, "yml")))
            .collect();
        names.sort_unstable();
        if names.len() > MAX_FILES {
            let message = format!("too many files: only the first {MAX_FILES} of {} are read", names.len());
            self.diagnostics.push(Diagnostic::in_file(Severity::Error, &folder.into(), message));
            names.truncate(MAX_FILES);
        }
        self.files.extend(names.into_iter().map(|name| (kind, format!("{folder}/{name}").into())));
    }

    /// Returns the files of one kind.
    pub fn of(&self, kind: FileKind) -> impl Iterator<Item = &Arc<str>> {
        self.files.iter().filter(move |(own, _)| *own == kind).map(|(_, file)| file)
    }
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_where_they_lie() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in [
            "helve.yaml",
            "tools/native/b.yaml",
            "tools/native/a.yml",
            "tools/native/readme.md",
            "tools/native/.hidden.yaml",
            "tool_sets/s.yaml",
            "configs/tool_sets/t.yaml",
            "agents/x.yaml",
            "tools/other/y.yaml",
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, "").expect("a file");
        }
        let found = discover(folder.path()).expect("a project");
        let names: Vec<_> = found.files.iter().map(|(_, file)| &**file).collect();
        assert_eq!(
            names,
            ["helve.yaml", "tools/native/a.yml", "tools/native/b.yaml", "tool_sets/s.yaml", "configs/tool_sets/t.yaml", "agents/x.yaml"]
        );
        assert_eq!(found.of(FileKind::Set).count(), 2);
        assert!(found.diagnostics.is_empty());
        fs::write(folder.path().join("helve.yml"), "").expect("a file");
        let both = discover(folder.path()).expect("a project");
        assert_eq!((both.of(FileKind::Config).count(), both.diagnostics.len()), (1, 1), "never one silently instead of the other");
        assert!(discover(&folder.path().join("nowhere")).is_err());
    }
}
