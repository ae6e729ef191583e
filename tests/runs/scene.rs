//! A project whose model is played by a script, and `helve run` in it. What must hold for every run is checked here, for all of them:
//! it ends, it prints no key, and its events keep the contract.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use helve_core::untrusted;
use helve_testkit::{ModelServer, Script, Turn};
use serde_json::{Map, Value, json};

use crate::folder::Project;

/// The key of the scripted model. No run may print it.
pub const KEY: &str = "test-key-0123456789";
/// A run that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(20);
const TYPES: [&str; 19] = [
    "run_started",
    "model_requested",
    "text_delta",
    "reasoning_delta",
    "model_responded",
    "tool_requested",
    "tool_start",
    "tool_progress",
    "tool_complete",
    "task_accepted",
    "task_finished",
    "tools_changed",
    "permission_request",
    "permission_result",
    "strategy_changed",
    "notification",
    "run_waiting",
    "run_finished",
    "run_failed",
];

/// A project, and the server that plays its model.
pub struct Scene {
    pub project: Project,
    pub server: ModelServer,
    /// Whether the folder is trusted as it is whenever a command begins.
    trusted: bool,
}

impl Scene {
    /// A model that speaks OpenAI's Chat Completions.
    pub fn new(script: impl Into<Script>) -> Self {
        Self::of("openai_compatible", "", script)
    }

    /// A model of a provider, with more to say of it, such as `timeouts: {idle: 1s}`.
    pub fn of(provider: &str, more: &str, script: impl Into<Script>) -> Self {
        let scene = Self { project: Project::new(&[]), server: ModelServer::start_blocking(script), trusted: true };
        let base = if provider == "gemini" { format!("{}/v1beta", scene.server.origin()) } else { scene.server.url().to_owned() };
        let entry = format!("{{provider: {provider}, base_url: \"{base}\", api_key: \"{KEY}\", model: big, {more}}}");
        scene.project.write("helve.yaml", format!("model: house\nmodels:\n  house: {entry}\n").as_bytes());
        scene
    }

    /// The same scene with one more file.
    pub fn with(self, file: &str, text: &str) -> Self {
        self.project.write(file, text.as_bytes());
        self
    }

    /// `helve run` with these arguments, to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.start(arguments, "").finish()
    }

    /// `helve run --json`, to its end. Its events keep the contract.
    pub fn events(&self, arguments: &[&str]) -> Ran {
        let mut ran = self.run(&[&["--json", "-vv"], arguments].concat());
        ran.read_events();
        ran
    }

    /// The same scene in a folder that is not trusted: the user names the model.
    pub fn untrusted(self) -> Self {
        Self { trusted: false, ..self }
    }

    /// `helve run` with something on its stdin.
    pub fn start(&self, arguments: &[&str], stdin: &str) -> Running {
        Running::start(&mut self.command(&[&["run"], arguments].concat()), stdin)
    }

    /// The command in this project, with an environment that knows nothing.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = alone(self.project.command(arguments), &self.project);
        if self.trusted {
            let trusted = self.project.run(&["trust", "--yes"]);
            assert!(trusted.status.success(), "{}", crate::folder::stderr(&trusted));
        } else {
            command.env("HELVE_MODEL", format!("{}#big", self.server.url()));
        }
        command
    }

    /// The process of the tool that sleeps, once it does.
    pub fn nap(&self) -> String {
        let (file, begun) = (self.project.folder.path().join("nap.pid"), Instant::now());
        loop {
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => assert!(begun.elapsed() < LONGEST, "it does not sleep"),
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the model was told of the results of its calls, in its last request, without the mark of each.
    pub fn told(&self) -> Vec<String> {
        let last = self.server.requests().last().cloned().expect("a request");
        let results = last.turns.iter().filter_map(|turn| if let Turn::Result { text, .. } = turn { Some(unmarked(text)) } else { None });
        results.collect()
    }
}

/// A result without the mark that every one has.
pub fn unmarked(result: &str) -> String {
    // Gemini is told of a failure as the field of an object.
    let failure = serde_json::from_str::<Value>(result).ok().and_then(|result| Some(result.get("error")?.as_str()?.to_owned()));
    let result = failure.as_deref().unwrap_or(result);
    let inside = result.strip_prefix(untrusted::OPEN).and_then(|rest| rest.strip_suffix(untrusted::CLOSE));
    inside.unwrap_or_else(|| panic!("the result is not marked: {result}")).to_owned()
}

/// A tool that sleeps, after it wrote down which process it is.
pub const NAP: (&str, &str) =
    ("tools/builtin/nap.yaml", "name: nap\ndescription: Sleeps.\ncommand: [sh, -c, \"echo $$ > nap.pid; exec sleep 30\"]\n");

/// A command without anything of the machine's environment but its programs.
pub fn alone(mut command: Command, project: &Project) -> Command {
    let kept: Vec<_> = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command.env_clear().envs(kept).env("HOME", project.state.path());
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
}

/// Whether a process dies, soon if not now.
pub fn dies(process: &str) -> bool {
    let lives = || Command::new("kill").args(["-0", process]).stderr(Stdio::null()).status().expect("kill").success();
    for _ in 0..200 {
        if !lives() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// A run under way.
pub struct Running {
    child: Child,
    begun: Instant,
    stdout: Pipe,
    stderr: Pipe,
}

/// What came out of a pipe so far, and who reads it.
struct Pipe(Arc<Mutex<Vec<u8>>>, JoinHandle<()>);

impl Pipe {
    fn read(mut from: impl Read + Send + 'static) -> Self {
        let text = Arc::<Mutex<Vec<u8>>>::default();
        let into = text.clone();
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..count]);
            }
        });
        Self(text, reader)
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn all(self) -> String {
        self.1.join().expect("a reader");
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Running {
    pub fn start(command: &mut Command, stdin: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("helve runs");
        let (stdout, stderr) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
        // Whoever does not read it may close it.
        let _ = child.stdin.take().expect("stdin").write_all(stdin.as_bytes());
        Self { child, begun: Instant::now(), stdout: Pipe::read(stdout), stderr: Pipe::read(stderr) }
    }

    /// Waits until something was printed on stdout.
    pub fn wait_for(&mut self, text: &str) {
        while !self.stdout.so_far().contains(text) {
            self.still_in_time();
        }
    }

    /// Kills it, without a word.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("dead");
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    /// Runs to the end, and looks for secrets in what was printed.
    pub fn finish(mut self) -> Ran {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            self.still_in_time();
        };
        let took = self.begun.elapsed();
        let (stdout, stderr) = (self.stdout.all(), self.stderr.all());
        assert!(!stdout.contains(KEY) && !stderr.contains(KEY), "the key is shown:\n{stdout}\n{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { code: status.code(), stdout, stderr, took, events: Vec::new() }
    }

    fn still_in_time(&mut self) {
        if self.begun.elapsed() > LONGEST {
            let _ = self.child.kill();
            panic!("it hangs, and said:\n{}\n{}", self.stdout.so_far(), self.stderr.so_far());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
    pub events: Vec<Value>,
}

impl Ran {
    /// Reads stdout as events, and holds them to the contract.
    pub fn read_events(&mut self) {
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}\n{}", self.stderr));
        self.events = self.stdout.lines().map(read).collect();
        keep_the_contract(&self.events);
    }

    /// What some events say.
    pub fn data(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).map(|event| &event["data"]).collect()
    }

    /// The event that ended it: its type, and the answer's text and reason, or the kind of the error.
    pub fn end(&self) -> (String, String) {
        let Some(last) = self.events.last() else { panic!("no events: {}", self.stderr) };
        let (data, words) = (&last["data"], |value: &Value| value.as_str().unwrap_or_default().to_owned());
        match words(&last["type"]).as_str() {
            "run_finished" => (words(&data["reason"]), words(&data["text"])),
            "run_failed" => ("failed".to_owned(), words(&data["error"]["kind"])),
            other => (other.to_owned(), String::new()),
        }
    }

    /// The calls that were announced: tool, arguments, and the kind of error or the text that came of each.
    pub fn calls(&self) -> Vec<(String, Value, String)> {
        let outcomes: BTreeMap<&str, &Value> =
            self.data("tool_complete").iter().map(|data| (data["call_id"].as_str().expect("an id"), &data["outcome"])).collect();
        let call = |data: &&Value| {
            let outcome = outcomes.get(data["call_id"].as_str().expect("an id")).copied().unwrap_or(&Value::Null);
            let came = outcome["error"]["kind"].as_str().or(outcome["text"].as_str()).unwrap_or("nothing");
            (data["tool"].as_str().expect("a name").to_owned(), data["arguments"].clone(), came.to_owned())
        };
        self.data("tool_requested").iter().map(call).collect()
    }

    /// The strategies that were changed to.
    pub fn strategies(&self) -> Vec<String> {
        self.data("strategy_changed").iter().map(|data| format!("{} {}", data["from"], data["to"]).replace('"', "")).collect()
    }

    /// What happened, without ids, times and pieces: first what has an order of its own, then what calls did.
    pub fn story(&self) -> Vec<Value> {
        let (mut story, mut calls) = (Vec::new(), Vec::new());
        for event in &self.events {
            let kind = event["type"].as_str().expect("a type");
            let told = json!({"type": kind, "data": without_ids(&event["data"])});
            match kind {
                "text_delta" | "reasoning_delta" => {}
                kind if kind.starts_with("tool_") => calls.push(told),
                _ => story.push(told),
            }
        }
        calls.sort_by_key(Value::to_string);
        story.extend(calls);
        story
    }

    /// The pieces of text, put together.
    pub fn pieces(&self) -> String {
        self.data("text_delta").iter().filter_map(|data| data["text"].as_str()).collect()
    }
}

/// What must hold for the events of any run.
fn keep_the_contract(events: &[Value]) {
    let (mut last, mut open) = (0, BTreeMap::<String, (usize, usize)>::new());
    for event in events {
        let names: Vec<&str> = event.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(names, ["run_id", "conversation_id", "parent_run_id", "seq", "time", "type", "data"], "{event}");
        let kind = event["type"].as_str().expect("a type");
        assert!(TYPES.contains(&kind), "{event}");
        let piece = matches!(kind, "text_delta" | "reasoning_delta");
        last += u64::from(!piece);
        assert_eq!(event["seq"], last, "a gap before {event}");
        assert_eq!(event["run_id"], events[0]["run_id"]);
        let call = || event["data"]["call_id"].as_str().expect("an id").to_owned();
        match kind {
            "tool_requested" => open.entry(call()).or_default().0 += 1,
            "tool_complete" => open.entry(call()).or_default().1 += 1,
            _ => {}
        }
    }
    let Some(end) = events.last() else { panic!("no events") };
    assert_eq!(events[0]["type"], "run_started");
    let ends = events.iter().filter(|event| matches!(event["type"].as_str(), Some("run_finished" | "run_failed"))).count();
    if end["type"] == "run_waiting" {
        assert_eq!(ends, 0, "{events:?}");
        return;
    }
    assert!(ends == 1 && (end["type"] == "run_finished" || end["type"] == "run_failed"), "{end}");
    assert!(open.values().all(|counts| *counts == (1, 1)), "announced, ended: {open:?}");
}

fn without_ids(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !name.ends_with("id") && *name != "duration_ms" && *name != "digest");
            Value::Object(kept.map(|(name, value)| (name.clone(), without_ids(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(without_ids).collect(),
        other => other.clone(),
    }
}
