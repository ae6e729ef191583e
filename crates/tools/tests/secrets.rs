//! A canary secret goes through everything that can be seen, and is seen nowhere. Events are told, too.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::{Arc, Mutex};

use helve_core::store::{MemoryStore, TaskFilter};
use helve_core::{
    CallContext, CancellationToken, ErrorKind, EventData, ListSource, Mode, Observer, Output, Redactor, Rules, Schema, Store, ToolCall,
    ToolError,
};
use helve_testkit::{call, echo, fake, spec, spec_of, toolkit};
use helve_tools::{Catalogue, Executor, ExecutorOptions, StoreHandle, Toolkit, View, Worker};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

/// Long enough that a text cut to a length could show a part of it, and with characters that JSON escapes.
const CANARY: &str = "canary-7f3a\"9\\z-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-canary-end";

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lines").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn executor() -> Executor {
    let redactor = Redactor::default();
    redactor.add([CANARY.to_owned().into()]);
    Executor::new(ExecutorOptions::default().redactor(redactor))
}

#[tokio::test]
async fn a_secret_shows_in_no_log_error_or_outcome() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(lines.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let fail = fake(spec("fail"), |_, _| {
        Box::pin(async {
            let cause = std::io::Error::other(format!("GET /?key={CANARY}"));
            Err(ToolError::new(ErrorKind::Unreachable, format!("refused {CANARY}")).with(CANARY, json!([CANARY])).caused_by(cause))
        })
    });
    let panics = fake(spec("panics"), |_, _| Box::pin(async { panic!("{CANARY}") }));
    let strict = fake(spec_of("strict", json!({"type": "object", "properties": {"n": {"type": "integer"}}})), |_, _| {
        Box::pin(async { Ok(Output::default()) })
    });
    let promise = Schema::new(json!({"type": "integer"})).expect("a schema");
    let liar = fake(spec("liar").with_output(promise), |_, _| {
        Box::pin(async { Ok(Output::data(json!({"a": [CANARY]})).with_data(json!(CANARY))) })
    });
    let metadata = fake(spec("metadata"), |_, _| Box::pin(async { Ok(Output::text("x").with_metadata("seen", json!({CANARY: CANARY}))) }));
    let tools = toolkit([echo("echo", Rules::default()), fail, panics, strict, liar, metadata]);
    let executor = executor();
    let mut seen = String::new();
    for (tool, arguments) in [
        ("echo", json!({"text": CANARY, "nested": [{CANARY: CANARY}]})),
        ("fail", json!({"q": CANARY})),
        ("panics", json!({})),
        ("strict", json!({"n": CANARY})),
        ("strict", json!({CANARY: 1})),
        ("liar", json!({})),
        ("metadata", json!({})),
        (CANARY, json!({})),
    ] {
        seen += &call(&executor, &tools, tool, arguments).await.to_string();
    }
    seen += &String::from_utf8_lossy(&lines.0.lock().expect("lines"));
    assert!(seen.contains("tool call") && seen.contains("[REDACTED]"), "{seen}");
    assert!(!seen.contains("canary-7f3a") && !seen.contains("canary-end"), "{seen}");
}

#[tokio::test]
async fn every_call_is_one_line_at_info_with_masked_fields() {
    let lines = Lines::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).without_time().with_ansi(false).with_writer(lines.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let tools = toolkit([echo("echo", Rules::default())]);
    let outcome = call(&Executor::default(), &tools, "echo", json!({"password": "hunter2", "q": "x"})).await;
    let log = String::from_utf8_lossy(&lines.0.lock().expect("lines")).into_owned();
    assert_eq!(log.lines().count(), 1, "{log}");
    for part in ["INFO", "tool=echo", "success=true", "duration=", "[REDACTED]", outcome["call_id"].as_str().expect("an id")] {
        assert!(log.contains(part), "{part} is missing: {log}");
    }
    assert!(!log.contains("arguments=\"{\\\"password\\\":\\\"hunter2"), "{log}");
}

#[tokio::test]
async fn who_watches_is_told_of_start_and_progress() {
    #[derive(Default)]
    struct Watcher(Mutex<Vec<serde_json::Value>>);
    impl Observer for Watcher {
        fn observe(&self, event: EventData) {
            self.0.lock().expect("events").push(json!(event));
        }
    }
    let slow = fake(spec("slow"), |_, cx| {
        Box::pin(async move {
            cx.progress(Some(0.5), "half way");
            Ok(Output::default())
        })
    });
    let watcher = Arc::new(Watcher::default());
    let cx = CallContext::default().with_observer(watcher.clone());
    let call = ToolCall::new("slow", json!({}));
    let id = call.id;
    executor().execute(&toolkit([slow]), call, &cx).await;
    let events = watcher.0.lock().expect("events").clone();
    assert_eq!(
        events,
        [
            json!({"type": "tool_start", "data": {"call_id": id, "tool": "slow"}}),
            json!({"type": "tool_progress", "data": {"call_id": id, "fraction": 0.5, "message": "half way"}}),
        ]
    );
}

#[tokio::test]
async fn a_queued_call_has_its_secret_only_where_a_worker_knows_it() {
    let (got, store) = (Arc::new(Mutex::new(Vec::new())), MemoryStore::default());
    let seen = got.clone();
    let later = fake(spec("later").with_rules(Rules::default().mode(Mode::Background)), move |call: &ToolCall, _| {
        seen.lock().expect("calls").push(call.arguments.clone());
        Box::pin(async { Ok(Output::default()) })
    });
    let catalogue = Catalogue::new();
    catalogue.add_source(Arc::new(ListSource::new("tests", [later])));
    let tools = Toolkit::everything(&catalogue.snapshot(&View::default()));
    let handle = || StoreHandle::new(Arc::new(store.clone()));
    let work = async |executor: Executor| {
        Worker::new(handle(), executor, catalogue.clone(), 1).run_until_empty(CancellationToken::new()).await.expect("worked");
        store.tasks(TaskFilter::default().limit(1)).await.expect("tasks").pop().expect("a task")
    };
    for executor in [Executor::default(), executor()] {
        let here = self::executor();
        here.use_store(handle()).expect("the first");
        here.execute(&tools, ToolCall::new("later", json!({"key": CANARY})), &CallContext::default()).await;
        let task = work(executor).await;
        assert!(!json!(task).to_string().contains("canary"), "{task:?}");
        if got.lock().expect("calls").is_empty() {
            let error = task.outcome.as_ref().and_then(|outcome| outcome.error()).expect("an error");
            assert_eq!(error.kind(), ErrorKind::Interrupted);
        }
    }
    assert_eq!(*got.lock().expect("calls"), [json!({"key": CANARY})], "once, and never with a placeholder");
}
