//! A hostile server, a good one beside it, and the whole path of a call.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use helve_core::{CallContext, Outcome, SourceState, ToolCall, ToolSource};
use helve_mcp::{McpOptions, McpSource, PinStore, ServerReport};
use helve_tools::{Catalogue, Executor, Toolkit, View};
use serde_json::{Value, json};
use tempfile::TempDir;

const HOSTILE: &str = env!("CARGO_BIN_EXE_hostile-mcp");
/// Longer than anything takes on the slowest machine, except what never comes.
pub const LONG: Duration = Duration::from_mins(2);

/// Where servers are connected and their tools called.
pub struct Stage {
    folder: TempDir,
    pub catalogue: Catalogue,
    executor: Executor,
    pins: Option<Arc<dyn PinStore>>,
}

impl Stage {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, catalogue: Catalogue::new(), executor: Executor::default(), pins: None }
    }

    /// A stage on which tools must be approved first.
    pub fn with_pins(pins: Arc<dyn PinStore>) -> Self {
        Self { pins: Some(pins), ..Self::new() }
    }

    /// Connects a server that is described as in a file.
    pub fn connect(&self, definition: Value) -> Arc<McpSource> {
        let definition = serde_json::from_value(definition).expect("a definition");
        let options = McpOptions { pins: self.pins.clone(), ..McpOptions::default() };
        let source = McpSource::connect(&definition, self.folder.path(), &options).expect("a server");
        self.catalogue.add_source(source.clone());
        source
    }

    /// Connects the hostile server in a mode, under the name `bad`, and waits until that is done or has failed.
    pub async fn bad(&self, mode: &str, flags: &[&str]) -> Arc<McpSource> {
        let source = self.connect(server("bad", mode, flags));
        settle(&source).await;
        source
    }

    /// Like `connect`, on a stage of its own.
    pub async fn of_bad(mode: &str, flags: &[&str]) -> (Self, Arc<McpSource>) {
        let stage = Self::new();
        let bad = stage.bad(mode, flags).await;
        (stage, bad)
    }

    /// Calls a tool, all the way.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let toolkit = Toolkit::everything(&self.catalogue.snapshot(&View::default()));
        self.executor.execute(&toolkit, ToolCall::new(tool, arguments), &CallContext::default()).await
    }

    /// Does some work while another server is called over and over, which must not suffer.
    pub async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let good = self.connect(server("good", "good", &[]));
        settle(&good).await;
        let mut work = std::pin::pin!(tokio::time::timeout(LONG, work));
        loop {
            let called = tokio::time::timeout(LONG, self.call("good_echo", json!({"n": 1})));
            let outcome = tokio::select! {
                done = &mut work => {
                    self.check_good().await;
                    return done.expect("the work comes to an end");
                }
                outcome = called => outcome.expect("the good server answers"),
            };
            assert!(outcome.is_success(), "{outcome:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn check_good(&self) {
        let outcome = self.call("good_echo", json!({"n": 2})).await;
        assert_eq!(outcome.output().map(|output| &output.data), Some(&json!({"n": 2})), "{outcome:?}");
    }
}

/// What a file says about the hostile server in a mode.
pub fn server(name: &str, mode: &str, flags: &[&str]) -> Value {
    let command: Vec<&str> = [HOSTILE, mode].iter().chain(flags).copied().collect();
    described(name, &command)
}

/// The definition of any program.
pub fn described(name: &str, command: &[&str]) -> Value {
    json!({"name": name, "command": command, "trusted": true, "timeout": "40s"})
}

/// The hostile program, for those who start it by another.
pub fn program() -> &'static str {
    HOSTILE
}

/// Waits until a server is connected or has failed.
pub async fn settle(source: &McpSource) {
    tokio::time::timeout(LONG, source.settled()).await.expect("connecting comes to an end");
}

/// Waits until a report says what is expected.
pub async fn reports(source: &McpSource, what: &str, expected: impl Fn(&ServerReport) -> bool) -> ServerReport {
    for _ in 0..10_000 {
        let report = source.report();
        if expected(&report) {
            return report;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server is never {what}: {:#?}", source.report());
}

/// The names of the tools that a source offers now.
pub fn offered(source: &McpSource) -> Vec<String> {
    match &*source.tools().borrow() {
        SourceState::Ready(tools) => tools.as_slice().iter().map(|tool| tool.spec().name().to_string()).collect(),
        _ => Vec::new(),
    }
}

/// Why a source has no tools.
pub fn trouble(source: &McpSource) -> String {
    match &*source.tools().borrow() {
        SourceState::Failed(why) => {
            assert_eq!(source.report().error.as_deref(), Some(&**why));
            assert!(!source.report().connected);
            why.to_string()
        }
        _ => panic!("the server has not failed: {:#?}", source.report()),
    }
}

/// That a text for people can neither hide nor move anything, and is not endless.
pub fn assert_clean(text: &str) {
    let bad: Vec<char> = text.chars().filter(|character| helve_core::printable::is_deceptive(*character)).collect();
    assert!(bad.is_empty() && text.len() < 20_000, "{} bytes, {bad:?}: {}", text.len(), text.escape_debug().take(2000).collect::<String>());
}
