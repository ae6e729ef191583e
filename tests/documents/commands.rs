//! The commands and files in README.md and the guide: run and checked in a folder of their page, without a key.
//!
//! The blocks of a page share a folder, which is empty at first, and a home of their own. Comments before a block, which readers do not
//! see, say more about it: `not run:` with the reason why it is not, `before:` with commands that prepare it, `needs:` with a program
//! that may be missing, `typed:` with what a person types at a terminal, and `model:` with what a model says, as JSON: a text, or a call
//! as `{"tool": {arguments}}`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use helve_testkit::{ModelServer, Reply, Script};
use serde_json::Value;
use tempfile::TempDir;

use crate::output::fits;
use crate::pages::{Block, blocks, read, user_documents};

/// How long a block may take. One that serves for ever is `not run`.
const SECONDS: &str = "60";

/// A command that a block shows, and the output that it shows behind it.
struct Shown<'a> {
    command: &'a str,
    output: Vec<&'a str>,
}

/// The folders in which the blocks of a page run.
struct Page {
    folder: TempDir,
    home: TempDir,
    /// Ids that commands printed, by kind, such as `run`.
    ids: RefCell<BTreeMap<String, String>>,
}

impl Page {
    fn new() -> Self {
        let page = Self { folder: TempDir::new().expect("a folder"), home: TempDir::new().expect("a folder"), ids: RefCell::default() };
        fs::create_dir(page.house()).expect("a folder");
        page
    }

    /// The folder of the page, by the name that documents have for a project.
    fn house(&self) -> PathBuf {
        self.folder.path().join("house")
    }

    /// Runs a script in the folder of the page, with a clean environment.
    fn run(&self, script: &str, model: Option<&ModelServer>) -> Output {
        let helve = Path::new(env!("CARGO_BIN_EXE_helve")).parent().expect("the folder of the binary");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command.args(["--kill-after=1", SECONDS, "bash", "-c"]).arg(script).current_dir(self.house()).stdin(Stdio::null()).env_clear();
        command.env("PATH", format!("{}:{path}", helve.display())).env("HOME", self.home.path());
        command.env("NO_COLOR", "1").env("LANG", "C.UTF-8").env("TZ", "UTC");
        if let Some(model) = model {
            command.env("HELVE_MODEL", format!("{}#model", model.url()));
        }
        command.output().expect("bash runs")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.house().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Runs or checks a block, and says what is wrong with it.
    fn check(&self, block: &Block) -> Result<(), String> {
        if block.comment("not run").is_some_and(|reason| !reason.is_empty()) {
            return Ok(());
        }
        if let Some(program) = block.comment("needs")
            && !crate::folder::has("documents", program)
        {
            return Ok(());
        }
        let prepared = self.run(&format!("set -e\n{}", block.comment("before").unwrap_or_default()), None);
        if !prepared.status.success() {
            return Err(format!("`before` fails: {}", both(&prepared)));
        }
        if let Some(file) = block.file() {
            self.write(file, &block.text);
        }
        match block.language.as_str() {
            "sh" => self.script(block),
            "console" => self.session(block),
            "yaml" => self.yaml(block),
            "json" => json(block),
            "text" | "toml" | "python" => Ok(()),
            language if language.starts_with("rust") => rust(block),
            language => Err(format!("no check knows the language `{language}`")),
        }
    }

    /// A block of commands: all of them succeed.
    fn script(&self, block: &Block) -> Result<(), String> {
        let output = self.run(&format!("set -eo pipefail\n{}", block.text), model(block).as_ref());
        if output.status.success() { Ok(()) } else { Err(both(&output)) }
    }

    /// Commands behind `$`, each with its output. A command without one only has to succeed.
    fn session(&self, block: &Block) -> Result<(), String> {
        let model = model(block);
        let typed = block.comment("typed");
        for Shown { command, output: lines } in shown(&block.text)? {
            let command = self.with_ids(command);
            let script = match typed {
                None => command.clone(),
                Some(typed) => format!("printf '%s\\n' '{typed}' | script -qec '{command}' /dev/null | tail -n +2 | tr -d '\\r'"),
            };
            let output = self.run(&format!("exec 2>&1\n{script}"), model.as_ref());
            let (given, status) = (both(&output), output.status.code());
            self.learn_ids(&given);
            let mut expected = lines.join("\n");
            if typed.is_some() {
                expected.push_str("…\n…");
            }
            let waits = lines.iter().any(|line| line.starts_with("waiting:"));
            let fails = lines.iter().any(|line| line.starts_with("error:"));
            if status != Some(if waits { 3 } else { 0 }) && !fails && typed.is_none() {
                return Err(format!("`{command}` ends with status {status:?}:\n{given}"));
            }
            if !lines.is_empty() && !fits(&expected, &given) {
                return Err(format!("`{command}` prints something else:\n{given}\n-- shown:\n{expected}"));
            }
        }
        Ok(())
    }

    /// Remembers the ids in an output, the latest of each kind.
    fn learn_ids(&self, given: &str) {
        let mut ids = self.ids.borrow_mut();
        for word in given.split(|character: char| !character.is_ascii_alphanumeric() && character != '_') {
            if let Some((kind, id)) = word.split_once('_')
                && id.len() == 26
                && id.starts_with("01")
            {
                ids.insert(kind.to_owned(), word.to_owned());
            }
        }
    }

    /// A command with whole ids: documents shorten them, as in `run_01M7…`.
    fn with_ids(&self, command: &str) -> String {
        let whole = |word: &str| {
            let kind = word.strip_suffix('…').and_then(|word| word.split_once("_01")).map(|(kind, _)| kind);
            kind.and_then(|kind| self.ids.borrow().get(kind).cloned()).unwrap_or_else(|| word.to_owned())
        };
        command.split(' ').map(whole).collect::<Vec<_>>().join(" ")
    }

    /// A file of a project: Helve finds no mistake in the folder.
    fn yaml(&self, block: &Block) -> Result<(), String> {
        let file = block.file().ok_or("the first line of a YAML file is a comment with its path; a part of a file is `not run`")?;
        let checked = self.run("helve tools check --json", None);
        let report: Value = serde_json::from_slice(&checked.stdout).map_err(|error| format!("{error}: {}", both(&checked)))?;
        let found = report["diagnostics"].as_array().ok_or("no diagnostics")?;
        let errors: Vec<_> = found.iter().filter(|found| found["severity"] == "error").map(Value::to_string).collect();
        if errors.is_empty() { Ok(()) } else { Err(format!("{file}: {}", errors.join("\n"))) }
    }
}

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn shown(text: &str) -> Result<Vec<Shown<'_>>, String> {
    let mut found: Vec<Shown<'_>> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push(Shown { command, output: Vec::new() }),
            (None, Some(last)) => last.output.push(line),
            (None, None) => return Err("a console block begins with `$ `".into()),
        }
    }
    Ok(found)
}

/// A model that says what the block's comment says, if there is one.
fn model(block: &Block) -> Option<ModelServer> {
    let said: Vec<Value> = serde_json::from_str(block.comment("model")?).unwrap_or_else(|error| panic!("{}: {error}", block.place()));
    let script = said.iter().fold(Script::new(), |script, said| match said {
        Value::Object(calls) => script.reply(Reply::calls(calls.iter().map(|(tool, arguments)| (tool.as_str(), arguments.clone())))),
        text => script.reply(Reply::text(text.as_str().unwrap_or_default())),
    });
    Some(ModelServer::start_blocking(script))
}

/// JSON documents, one or a line each. Comments and `…` are for readers.
fn json(block: &Block) -> Result<(), String> {
    let text: Vec<_> = block.text.lines().filter(|line| !line.starts_with("//")).collect();
    let read = |text: &str| serde_json::from_str::<Value>(text).map(drop).map_err(|error| error.to_string());
    read(&text.join("\n")).or_else(|_| text.iter().try_for_each(|line| read(line)))
}

/// Rust blocks are tests of the documentation of `helve`, which names the page.
fn rust(block: &Block) -> Result<(), String> {
    if !["rust", "rust,no_run"].contains(&block.language.as_str()) {
        return Err(format!("`{}` is neither `rust` nor `rust,no_run`", block.language));
    }
    let pages = read("crates/helve/src/documents.rs");
    if pages.contains(&format!("\"{}\"", block.document)) { Ok(()) } else { Err("the page is not in crates/helve/src/documents.rs".into()) }
}

#[test]
fn every_block_for_users_is_run_or_says_why_not() {
    let documents = user_documents();
    assert!(documents.len() > 10, "{documents:?}");
    let check = |document: &String| {
        let page = Page::new();
        let wrong = |block: Block| page.check(&block).err().map(|error| format!("{}: {error}", block.place()));
        blocks(document).into_iter().filter_map(wrong).collect::<Vec<_>>()
    };
    let wrong: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = documents.iter().map(|document| scope.spawn(move || check(document))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a page")).collect()
    });
    assert!(wrong.is_empty(), "blocks that do not do what they show:\n\n{}", wrong.join("\n\n"));
}
