//! Every command of Helve as it is typed in a folder that is not trusted, with what it may do by its very purpose.

use std::process::Command;

/// What a command may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Nothing,
    /// The model that the person named on the command line.
    NamedModel,
    /// Servers of models on this machine, where no model is named. They are looked for at the ports that they are known for.
    LocalModels,
    /// It listens on the address of the command line.
    Clients,
}

/// The ports of model servers that Helve looks for: Ollama, LM Studio, llama.cpp, vLLM.
pub const LOCAL_MODELS: [&str; 4] = ["127.0.0.1:11434", "127.0.0.1:1234", "127.0.0.1:8080", "127.0.0.1:8000"];

/// Which folders are opened with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A few, with files of all kinds.
    Some,
    /// Those with a `helve.yaml`.
    Settings,
    /// Every one. Together these commands use all parts of a folder.
    All,
}

/// A command line. `{folder}` is the project's folder, `{outside}` another one that the person names; `{model}` is a model of the person's
/// own, and `{run}`, `{approval}` and `{task}` are ids of what is stored.
pub struct Line {
    pub words: &'static [&'static str],
    /// The files that the person names, and that it may write.
    pub writes: &'static [&'static str],
    pub reach: Reach,
    pub scope: Scope,
}

const fn line(words: &'static [&'static str]) -> Line {
    Line { words, writes: &[], reach: Reach::Nothing, scope: Scope::Some }
}

impl Line {
    const fn writes(self, writes: &'static [&'static str]) -> Self {
        Self { writes, ..self }
    }

    const fn reaches(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    const fn opens(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }
}

/// What a person types to agree, and so no command of a folder that is only opened. Options that say the same in advance are left out, too:
/// `trust --yes`, `run --approve yes`.
const CONSENTS: [(&str, &str); 2] = [
    ("tools call", "a call by a person is consent to this call"),
    ("approvals approve", "the answer to a question is consent to this call"),
];

/// In an order in which each finds something: a run that waits comes before those that show it.
pub const LINES: [Line; 78] = [
    line(&["--version"]),
    line(&["help"]),
    line(&["tools", "check"]),
    line(&["tools", "check", "--json"]).opens(Scope::All),
    line(&["tools"]),
    line(&["tools", "list", "--json"]),
    line(&["tools", "show", "t0"]),
    line(&["tools", "show", "n0", "--json"]),
    line(&["sets"]),
    line(&["agents"]),
    line(&["models"]).reaches(Reach::LocalModels),
    line(&["models", "probe"]).reaches(Reach::LocalModels),
    line(&["models", "probe", "house"]).opens(Scope::Settings),
    line(&["models", "probe", "{model}"]).reaches(Reach::NamedModel),
    line(&["prompt"]),
    line(&["prompt", "--dialect", "xml", "--agent", "a0", "--json"]),
    line(&["trust"]),
    line(&["trust", "--json"]).opens(Scope::All),
    line(&["trust", "--revoke"]),
    line(&["mcp"]),
    line(&["mcp", "list", "--json"]),
    line(&["mcp", "approve"]).opens(Scope::All),
    line(&["mcp", "approve", "m0", "--yes"]),
    line(&["mcp", "approve", "m1", "--yes"]),
    line(&["mcp", "approve", "m2", "--yes"]),
    line(&["mcp", "login", "m1"]),
    line(&["mcp", "login", "m1", "--forget"]),
    line(&["mcp", "serve"]),
    line(&["mcp", "serve", "--stdio"]).opens(Scope::All),
    line(&["mcp", "serve", "--stdio", "--gateway", "--set", "s0"]),
    line(&["mcp", "serve", "--http", "127.0.0.1:0"]).reaches(Reach::Clients),
    line(&[]).reaches(Reach::LocalModels),
    line(&["chat"]).reaches(Reach::LocalModels),
    line(&["chat", "--agent", "a0", "--model", "{model}"]).reaches(Reach::NamedModel),
    line(&["chat", "--continue", "--model", "{model}"]).reaches(Reach::NamedModel),
    line(&["run", "hi"]).opens(Scope::All).reaches(Reach::LocalModels),
    line(&["run", "hi", "--local"]).reaches(Reach::LocalModels),
    line(&["run", "hi", "--model", "house"]).opens(Scope::Settings),
    line(&["run", "hi", "--approve", "no", "--model", "{model}"]).reaches(Reach::NamedModel),
    line(&["run", "hi", "--model", "{model}", "--record", "{outside}/tape.jsonl"])
        .reaches(Reach::NamedModel)
        .writes(&["{outside}/tape.jsonl"]),
    line(&["run", "hi", "--agent", "a0", "--model", "{model}", "--json"]).opens(Scope::All).reaches(Reach::NamedModel),
    line(&["runs"]),
    line(&["runs", "list", "--json"]),
    line(&["runs", "show", "{run}"]),
    line(&["approvals"]),
    line(&["approvals", "list", "--all", "--json"]),
    line(&["approvals", "show", "{approval}"]),
    line(&["runs", "resume", "{run}", "--model", "{model}"]).reaches(Reach::NamedModel),
    line(&["run", "--resume", "{run}", "--model", "{model}"]).reaches(Reach::NamedModel),
    line(&["worker", "--until-empty", "--model", "{model}"]).reaches(Reach::NamedModel),
    line(&["approvals", "deny", "{approval}", "--reason", "no"]),
    line(&["worker", "--until-empty"]).opens(Scope::All).reaches(Reach::LocalModels),
    line(&["runs", "resume", "{run}", "--model", "{model}"]).reaches(Reach::NamedModel),
    line(&["runs", "cancel", "{run}"]),
    line(&["tasks"]),
    line(&["tasks", "list", "--json"]),
    line(&["tasks", "show", "{task}"]),
    line(&["tasks", "cancel", "{task}"]),
    line(&["tasks", "retry", "{task}"]),
    line(&["worker", "--until-empty", "--concurrency", "1"]).reaches(Reach::LocalModels),
    line(&["runs", "prune", "--older-than", "1s"]),
    // SQLite has a journal beside a file while it writes.
    line(&["backup", "{outside}/copy.db"]).writes(&["{outside}/copy.db", "{outside}/copy.db-journal"]),
    line(&["demo"]),
    line(&["demo", "--json"]),
    line(&["parse"]),
    line(&["parse", "--formats"]),
    line(&["schema"]),
    line(&["schema", "helve"]),
    line(&["completions", "bash"]),
    line(&["init"]),
    line(&["init", "{outside}/sample"]).writes(&["{outside}/sample"]),
    line(&["mcp", "import"]),
    line(&["mcp", "import", "{outside}/mcp.json"]).writes(&["{folder}/tools/mcp/taken.yaml"]),
    line(&["mcp", "add", "added", "--url", "http://127.0.0.1:1/mcp"]).writes(&["{folder}/tools/mcp/added.yaml"]),
    line(&["mcp", "add", "added", "--yes", "--", "sh", "-c", "echo"]).writes(&["{folder}/tools/mcp/added.yaml"]),
    line(&["mcp", "remove", "m0"]).writes(&["{folder}/tools/mcp/m0.yaml"]),
    line(&["mcp", "remove", "m1", "--json"]).writes(&["{folder}/tools/mcp/m1.yaml"]),
    line(&["mcp", "remove", "m2"]).writes(&["{folder}/tools/mcp/m2.yaml"]),
];

/// The commands that are neither run nor a consent, as the command itself lists them.
pub fn left_out() -> Vec<String> {
    let mut left_out = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let below = subcommands(&path);
        let is_run = |line: &Line| {
            let words: Vec<_> = line.words.iter().map(|word| (*word).to_owned()).collect();
            // A command with others below it may be one itself.
            words.starts_with(&path) && words.get(path.len()).is_none_or(|next| !below.contains(next))
        };
        let name = path.join(" ");
        if !LINES.iter().any(is_run) && CONSENTS.iter().all(|(consent, _)| *consent != name) {
            left_out.push(name);
        }
        open.extend(below.into_iter().filter(|next| next != "help").map(|next| [path.clone(), vec![next]].concat()));
    }
    left_out
}

/// What `helve PATH --help` lists under `Commands:`.
fn subcommands(path: &[String]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_helve")).args(path).arg("--help").output().expect("helve runs");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{path:?}: {help}");
    let Some((_, listed)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let listed = listed.split("\n\n").next().unwrap_or_default();
    // Descriptions that take more than a line are indented further.
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(ToOwned::to_owned).collect()
}
