//! Log files: each line is one write, so a killed process leaves whole lines.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The files of a torture run.
#[derive(Debug, Clone)]
pub struct Paths(pub PathBuf);

impl Paths {
    /// The store.
    #[must_use]
    pub fn store_file(&self) -> PathBuf {
        self.0.join("store.db")
    }

    /// What clients observed.
    #[must_use]
    pub fn told(&self) -> PathBuf {
        self.0.join("told.log")
    }

    /// What a subscriber received. It reads this after a restart.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.0.join("events.log")
    }

    /// Which process claimed tasks, and how many it got.
    #[must_use]
    pub fn claims(&self) -> PathBuf {
        self.0.join("claims.log")
    }

    /// When a child's clients put calls into the queue.
    #[must_use]
    pub fn pulse(&self, child: usize) -> PathBuf {
        self.0.join(format!("pulse-{child}.log"))
    }

    /// Which results came too late.
    #[must_use]
    pub fn late(&self) -> PathBuf {
        self.0.join("late.log")
    }

    /// Which process began which call, of those that take long.
    #[must_use]
    pub fn begun(&self) -> PathBuf {
        self.0.join("begun.log")
    }

    /// The ids in the store of the crash tests.
    #[must_use]
    pub fn names(&self) -> PathBuf {
        self.0.join("names")
    }

    /// Which calls ran.
    #[must_use]
    pub fn ran(&self) -> PathBuf {
        self.0.join("ran.log")
    }
}

/// A file of lines.
#[derive(Debug)]
pub struct Log(File);

impl Log {
    /// Opens a file, to add to it.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        Self(File::options().create(true).append(true).open(path).expect("a log"))
    }

    /// Adds a line.
    pub fn add(&self, line: &impl Serialize) {
        // Who is killed in the middle of a line, where it goes over the end of a page, leaves a piece of it. The next line begins anew.
        let text = format!("\n{}\n", serde_json::to_string(line).expect("JSON"));
        let written = (&self.0).write(text.as_bytes()).expect("a log that can be written");
        assert_eq!(written, text.len(), "a line is written at once");
    }

    /// Returns all lines of a file; none if it is missing. An incomplete line is ignored: its process was killed while it wrote.
    #[must_use]
    pub fn read<T: DeserializeOwned>(path: &Path) -> Vec<T> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let whole = |line: &str| match serde_json::from_str(line) {
            Err(error) if error.is_eof() => None,
            read => Some(read.expect("a line")),
        };
        text.lines().filter_map(whole).collect()
    }
}
