//! A project's folder for tests, and the command in it.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with a project, and a state folder of its own beside it.
pub struct Project {
    pub folder: TempDir,
    pub state: TempDir,
}

impl Project {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: TempDir::new().expect("a folder"), state: TempDir::new().expect("a folder") };
        for (file, text) in files {
            project.write(file, text.as_bytes());
        }
        project
    }

    pub fn write(&self, file: &str, text: &[u8]) {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helve"));
        command.arg("-C").arg(self.folder.path()).args(arguments).stdin(Stdio::null());
        command.env_remove("HELVE_LOG").env("NO_COLOR", "1").env("HELVE_STATE_DIR", self.state.path().join("helve"));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("helve runs")
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)))
    }

    /// The output with the folder's own path taken out.
    pub fn shown(&self, output: &Output) -> String {
        let root = self.folder.path().canonicalize().expect("a path");
        stdout(output).replace(&*root.to_string_lossy(), "FOLDER")
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a program is installed; where it is not, the test is reported as skipped.
pub fn has(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        helve_testkit::skip(test, format!("{program} is not installed"));
    }
    found
}

/// Whether `script` gives a command a terminal; where it does not, the test is reported as skipped.
pub fn has_terminal(test: &str) -> bool {
    if !cfg!(target_os = "linux") {
        helve_testkit::skip(test, "`script` takes other options on this system");
        return false;
    }
    has(test, "script")
}

pub fn echo(name: &str) -> String {
    format!("name: {name}\ndescription: Gives back what it gets.\ncommand: [cat]\nparameters: [{{name: text}}]\n")
}
