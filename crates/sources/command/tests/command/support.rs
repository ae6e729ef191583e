//! A project folder for scripts, a short way to call one, and a check for processes left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_command::CommandDefinition;
use helve_core::authored::FieldError;
use helve_core::{CallContext, CallId, DynTool, Output, Redactor, ToolCall, ToolError};
use serde_json::{Value, json};
use tempfile::TempDir;

/// No test takes this long; a hanging one should fail.
const DEADLINE: Duration = Duration::from_secs(30);

pub struct Project {
    folder: TempDir,
    pub redactor: Redactor,
}

impl Project {
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder"), redactor: Redactor::default() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("a folder")
    }

    /// Writes a file from another process: a program that is open for writing cannot be started, and concurrent tests inherit open files.
    pub fn write(&self, name: &str, text: &str, mode: &str) {
        let script = "printf %s \"$2\" > \"$1\" && chmod \"$3\" \"$1\"";
        let status = Command::new("sh").args(["-c", script, "sh", name, text, mode]).current_dir(self.folder.path()).status();
        assert!(status.expect("sh runs").success(), "{name}");
    }

    pub fn try_tool(&self, definition: Value) -> Result<Arc<dyn DynTool>, FieldError> {
        read(definition).tool(self.folder.path(), "tools/builtin/test.yaml", &self.redactor)
    }

    pub fn tool(&self, definition: Value) -> Arc<dyn DynTool> {
        self.try_tool(definition).expect("a tool")
    }

    /// A shell script as a tool with any arguments.
    pub fn sh(&self, script: &str) -> Arc<dyn DynTool> {
        self.tool(json!({"command": ["sh", "-c", script], "parameters": {"type": "object", "additionalProperties": true}}))
    }

    pub async fn appears(&self, name: &str) {
        let path = self.folder.path().join(name);
        until(&format!("{name} appears"), || fs::metadata(&path).is_ok_and(|facts| facts.len() > 0)).await;
    }

    pub fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }
}

/// A definition, with a name and a description.
pub fn read(mut definition: Value) -> CommandDefinition {
    for (field, value) in [("name", "test"), ("description", "A test.")] {
        definition.as_object_mut().expect("an object").entry(field).or_insert_with(|| json!(value));
    }
    serde_json::from_value(definition).expect("a definition")
}

pub async fn call(tool: &Arc<dyn DynTool>, arguments: Value) -> Result<Output, ToolError> {
    let call = ToolCall::new("test", arguments);
    let result = run(tool, &call, &CallContext::default()).await;
    assert_eq!(marked(call.id), Vec::<PathBuf>::new(), "no process is left when a call is over");
    result
}

pub async fn run(tool: &Arc<dyn DynTool>, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
    tokio::time::timeout(DEADLINE, tool.call(call, cx)).await.expect("the call ends")
}

pub async fn text(tool: &Arc<dyn DynTool>, arguments: Value) -> String {
    call(tool, arguments).await.expect("an output").text
}

pub async fn error(tool: &Arc<dyn DynTool>, arguments: Value) -> String {
    call(tool, arguments).await.expect_err("an error").to_string()
}

/// The running processes of a call, in any group.
pub fn marked(call: CallId) -> Vec<PathBuf> {
    with_variable(&format!("HELVE_CALL_ID={call}"))
}

/// The running processes with this environment variable.
pub fn with_variable(marker: &str) -> Vec<PathBuf> {
    let holds = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
    };
    let processes = fs::read_dir("/proc").expect("Linux").flatten().map(|entry| entry.path());
    processes.filter(|process| holds(process)).collect()
}

/// Polls until a condition holds.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a program runs here with nothing but a `PATH`; where it does not, the test is reported as skipped.
pub fn runs(test: &str, program: &str, arguments: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    let status = command.args(arguments).env_clear().env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let runs = status.is_ok_and(|status| status.success());
    if !runs {
        helve_testkit::skip(test, format!("`{program}` does not run on this machine"));
    }
    runs
}
