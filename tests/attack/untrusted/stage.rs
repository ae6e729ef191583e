//! What is around a folder that is opened: the environment, the person's own model and files, the trap; and the judgement of what happened.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use helve_testkit::{ModelServer, Reply, Request, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::commands::{LINES, LOCAL_MODELS, Line, Reach};
use super::fields::VARIABLES;
use super::generated::{Generated, Plan};
use super::samples::Bait;
use super::watch::{Deeds, Stop, Watch, is_below};
use crate::doors::server::call;
use crate::folder::Project;
use crate::scene::alone;
use crate::trap::Trap;

/// A value that nothing of the folder may see.
const CANARY: &str = "canary-7f3b9c1d5e";

/// Files that hold nothing, and the memory of Helve itself, in which it erases its environment.
const OWN: [&str; 3] = ["/dev/null", "/dev/tty", "/proc/self/mem"];

/// What is around the folders.
pub struct Stage {
    pub trap: Trap,
    /// A folder of the person's own, with what command lines name, and where programs would leave their mark.
    outside: TempDir,
    model: ModelServer,
    watch: Watch,
}

impl Stage {
    pub fn new(test: &str) -> Self {
        let outside = tempfile::tempdir().expect("a folder");
        fs::create_dir(outside.path().join("temporary")).expect("a folder");
        let servers = r#"{"mcpServers": {"taken": {"command": "sh", "args": ["-c", "echo"]}}}"#;
        fs::write(outside.path().join("mcp.json"), servers).expect("a file");
        // It makes every call that it can.
        let script = Script::from_fn(|request: &Request| match request.results()[..] {
            [] => Reply::calls(request.tools.iter().take(60).map(|tool| (tool.as_str(), json!({})))),
            _ => Reply::text("done"),
        });
        Self { trap: Trap::set(), outside, model: ModelServer::start_blocking(script), watch: Watch::new(test) }
    }

    /// Where programs of a folder leave their mark.
    pub fn mark(&self) -> PathBuf {
        self.outside.path().join("mark")
    }

    pub fn plan(&self) -> Plan {
        Plan::new(&Bait { port: self.trap.port(), mark: &self.mark() })
    }

    /// A folder with samples as they are.
    pub fn sample_folder(&self) -> Project {
        self.plan().plain().write(&self.mark()).0
    }

    /// Runs a command in a folder, whatever it does.
    pub fn observe(&self, project: &Project, words: &[&str]) -> Deeds {
        self.watch.run(&self.command(project, words), "", None)
    }

    /// Opens a folder with all commands that it is for.
    pub fn open(&self, generated: &Generated) {
        let (project, task) = generated.write(&self.mark());
        let unknown = |prefix: &str| format!("{prefix}_01M7GH0NV0ASXMH73GMC4XK7KR");
        let ids = BTreeMap::from([("{task}", task), ("{run}", unknown("run")), ("{approval}", unknown("appr"))]);
        let mut opened = Opened { stage: self, project, ids };
        for line in LINES.iter().filter(|line| generated.is_in(line.scope)) {
            let deeds = opened.run(line);
            if line.words == ["tools", "check", "--json"] {
                loads(&deeds.out, generated);
            }
        }
        let state = snapshot(opened.project.state.path());
        let leaks: Vec<_> =
            state.iter().filter(|(_, bytes)| String::from_utf8_lossy(bytes).contains(CANARY)).map(|(name, _)| name).collect();
        assert!(leaks.is_empty(), "{leaks:?}");
        assert!(!format!("{:?}", self.model.requests()).contains(CANARY), "the model was told");
    }

    fn command(&self, project: &Project, words: &[impl AsRef<str>]) -> Command {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let mut command = alone(project.command(&words), project);
        command.env("HELVE_STATE_DIR", project.state.path().canonicalize().expect("a path").join("helve"));
        command.env("TMPDIR", self.outside.path().join("temporary")).envs(VARIABLES.map(|name| (name, CANARY)));
        command
    }

    fn model_address(&self) -> &str {
        self.model.origin().trim_start_matches("http://")
    }
}

/// Every file is loaded, but for those in which one position may break it. Otherwise they would show nothing.
fn loads(checked: &str, generated: &Generated) {
    let checked: Value = serde_json::from_str(checked).unwrap_or_else(|error| panic!("{error}: {checked}"));
    let may_be_refused = generated.may_be_refused();
    let is_unexpected = |diagnostic: &&Value| {
        diagnostic["severity"] == "error" && diagnostic["file"].as_str().is_none_or(|file| !may_be_refused.contains(&file))
    };
    let unexpected: Vec<_> = checked["diagnostics"].as_array().into_iter().flatten().filter(is_unexpected).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// A folder that is being opened.
struct Opened<'a> {
    stage: &'a Stage,
    project: Project,
    /// What is in the store, by the names that command lines have for it.
    ids: BTreeMap<&'static str, String>,
}

impl Opened<'_> {
    fn run(&mut self, line: &Line) -> Deeds {
        let words: Vec<String> = line.words.iter().map(|word| self.filled(word)).collect();
        let before = self.snapshot();
        let stop = Stop { ready: "serving MCP at http://", act: &ask_server };
        let serves = line.reach == Reach::Clients;
        let deeds = self.stage.watch.run(&self.stage.command(&self.project, &words), input(line), serves.then_some(&stop));
        let broken = self.broken(line, &deeds, &before);
        assert!(broken.is_empty(), "{words:?}: {broken:#?}\n{}{}", deeds.out, deeds.err);
        restore(&before, &self.snapshot());
        for (name, field) in [("{run}", "run_id"), ("{approval}", "approval_id")] {
            let found = deeds.out.split_once(&format!("\"{field}\":\"")).and_then(|(_, rest)| rest.split_once('"'));
            if let Some((id, _)) = found {
                self.ids.insert(name, id.to_owned());
            }
        }
        deeds
    }

    /// A word of a command line with what its names stand for.
    fn filled(&self, word: &str) -> String {
        let path = |path: &Path| path.canonicalize().expect("a path").display().to_string();
        let word = word.replace("{folder}", &path(self.project.folder.path())).replace("{outside}", &path(self.stage.outside.path()));
        let word = word.replace("{model}", &format!("{}#big", self.stage.model.url()));
        self.ids.iter().fold(word, |word, (name, id)| word.replace(name, id))
    }

    /// The folder, and the one beside it.
    fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = snapshot(self.project.folder.path());
        files.extend(snapshot(self.stage.outside.path()));
        files
    }

    /// What a command did that it may not do.
    fn broken(&self, line: &Line, deeds: &Deeds, before: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
        let mut broken = Vec::new();
        let named: Vec<PathBuf> = line.writes.iter().map(|file| self.filled(file).into()).collect();
        let is_named = |path: &Path| named.iter().any(|named| is_below(path, named));
        let state = self.project.state.path().canonicalize().expect("a path").join("helve");
        let may_write = |path: &Path| is_below(path, &state) || is_named(path) || OWN.iter().any(|own| path == Path::new(own));
        let after = self.snapshot();
        let changed = before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path) && !is_named(path));
        broken.extend(changed.map(|path| format!("changes {}", path.display())));
        broken.extend(deeds.writes.iter().filter(|path| !may_write(path)).map(|path| format!("writes {}", path.display())));
        broken.extend(
            deeds.programs.iter().filter(|program| *program != env!("CARGO_BIN_EXE_helve")).map(|program| format!("starts {program}")),
        );
        broken
            .extend(deeds.connections.iter().filter(|address| !self.may_reach(line, address)).map(|address| format!("reaches {address}")));
        let may_listen = |address: &str| line.reach == Reach::Clients && address == "127.0.0.1:0";
        broken.extend(deeds.listens.iter().filter(|address| !may_listen(address)).map(|address| format!("listens on {address}")));
        let is_foreign = |name: &&String| VARIABLES.contains(&name.as_str());
        broken.extend(deeds.variables.iter().filter(is_foreign).map(|name| format!("reads the variable {name}")));
        broken.extend(self.stage.trap.seen().iter().map(|request| format!("sends {request}")));
        broken.extend(
            ["panicked", CANARY]
                .iter()
                .filter(|word| deeds.out.contains(**word) || deeds.err.contains(**word))
                .map(|word| format!("says {word}")),
        );
        broken
    }

    fn may_reach(&self, line: &Line, address: &str) -> bool {
        match line.reach {
            Reach::NamedModel => address == self.stage.model_address(),
            Reach::LocalModels => LOCAL_MODELS.contains(&address),
            Reach::Nothing | Reach::Clients => false,
        }
    }
}

/// What a client says first.
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;

/// What a command reads: a client that asks for the tools, a person who says something, the text of a model.
fn input(line: &Line) -> &'static str {
    match line.words {
        ["mcp", "serve", ..] => HELLO,
        ["parse", ..] => r#"<tool_call>{"name": "t0", "arguments": {}}</tool_call>"#,
        _ => "hi\n",
    }
}

/// Calls a tool of a server that has said where it is.
fn ask_server(said: &str) {
    let address = said.split_once("serving MCP at http://").and_then(|(_, rest)| rest.split_once('/')).map(|(address, _)| address);
    let address = address.expect("an address");
    // The first waits for a person; the second is answered.
    let streams = ["t0", "calculate"].map(|tool| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(call("x", tool, r#"{"expression": "1"}"#).as_bytes()).expect("a request");
        stream
    });
    let answered = (&streams[1]).read(&mut [0; 4096]).expect("a response");
    assert!(answered > 0);
}

/// Every file below a folder, with what it holds; links by where they lead.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.canonicalize().expect("a path")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            if kind.is_dir() {
                files.insert(path.clone(), b"folder".to_vec());
                folders.push(path);
            } else if kind.is_symlink() {
                files.insert(path.clone(), fs::read_link(&path).expect("a link").display().to_string().into_bytes());
            } else {
                files.insert(path.clone(), fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

/// Undoes what a command wrote by its purpose.
fn restore(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) {
    for path in after.keys().rev().filter(|path| !before.contains_key(*path)) {
        let removed = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    for (path, bytes) in before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)) {
        fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
