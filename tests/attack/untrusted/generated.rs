//! The folders that are generated: which text stands where in which file, so that each pair of position and spelling is in one of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::commands::Scope;
use super::fields::{Coverage, Position, SPELLINGS, VARIABLES, isolated_spellings, spelling};
use super::samples::{Bait, Sample, samples};
use crate::folder::Project;
use crate::stores::change;

/// Folders with files of all kinds, in which every position that can have any text has one. Each of them has two variants of each file.
const PACKED: usize = SPELLINGS / 2;

/// Folders with files that are as their sample but for one position.
const SINGLE: usize = 10;

/// So many folders are opened with every command.
const OPENED_WITH_ALL: usize = 3;

/// A file that is generated.
struct File {
    path: String,
    text: String,
    /// Whether it may be refused: it has one position that is not as in its sample, and that may break it.
    isolated: bool,
}

/// What a folder holds.
#[derive(Default)]
pub struct Generated {
    files: Vec<File>,
    number: usize,
}

/// All folders, and what they cover.
pub struct Plan {
    pub folders: Vec<Generated>,
    pub coverage: Coverage,
    pub samples: Vec<Sample>,
    port: u16,
}

impl Plan {
    pub fn new(bait: &Bait) -> Self {
        let folders = (0..PACKED + SINGLE).map(|_| Generated::default()).collect();
        let mut plan = Self { folders, coverage: Coverage::default(), samples: samples(bait), port: bait.port };
        for sample in plan.samples.clone() {
            plan.pack(&sample);
            plan.isolate(&sample);
        }
        for number in 0..plan.folders.len() {
            plan.folders[number].number = number;
            let base = plan.samples.clone();
            plan.folders[number].add_base(&base);
        }
        plan
    }

    /// Files in which every position that can have any text has one; in each variant of the file another one.
    fn pack(&mut self, sample: &Sample) {
        let positions: Vec<_> = Position::all(&sample.value).into_iter().filter(|position| !position.is_isolated(sample)).collect();
        for variant in 0..SPELLINGS {
            let mut value = sample.value.clone();
            for (turn, position) in positions.iter().enumerate() {
                let index = (turn + variant) % SPELLINGS;
                position.put(&mut value, &spelling(index, self.port, turn + variant));
                self.coverage.tick(sample.kind, position, index);
            }
            self.add(sample, value, Some(variant));
        }
    }

    /// Files that are as their sample but for one position.
    fn isolate(&mut self, sample: &Sample) {
        for position in Position::all(&sample.value).into_iter().filter(|position| position.is_isolated(sample)) {
            for index in 0..isolated_spellings(&position, sample) {
                if self.coverage.has(sample.kind, &position, index) {
                    continue;
                }
                let mut value = sample.value.clone();
                position.put(&mut value, &spelling(index, self.port, index));
                self.coverage.tick(sample.kind, &position, index);
                self.add(sample, value, None);
            }
        }
    }

    /// A folder with the samples as they are.
    pub fn plain(&self) -> Generated {
        let mut folder = Generated { number: PACKED, ..Generated::default() };
        folder.add(&self.samples[0], self.samples[0].value.clone(), false);
        folder.add_base(&self.samples);
        folder
    }

    /// Puts a file into its folder; `helve.yaml` that has no place in one gets a folder of its own.
    fn add(&mut self, sample: &Sample, value: Value, variant: Option<usize>) {
        let isolated = variant.is_none();
        if sample.kind == "helve" && variant.is_none_or(|variant| variant >= PACKED) {
            let mut folder = Generated::default();
            let path = if self.folders.len().is_multiple_of(2) { "helve.yaml" } else { "helve.yml" };
            folder.files.push(File { path: path.to_owned(), text: text(&value), isolated });
            self.folders.push(folder);
            return;
        }
        let smallest = || (PACKED..PACKED + SINGLE).min_by_key(|folder| self.folders[*folder].files.len()).unwrap_or_default();
        let folder = variant.map_or_else(smallest, |variant| variant % PACKED);
        self.folders[folder].add(sample, value, isolated);
    }
}

impl Generated {
    fn add(&mut self, sample: &Sample, mut value: Value, isolated: bool) {
        let name = format!("x{}", self.files.len());
        // What is not spelled otherwise must not meet the name of another file.
        for field in ["name", "prefix"] {
            if sample.value[field].is_string() && value[field] == sample.value[field] {
                value[field] = json!(name);
            }
        }
        let kind = sample.kind;
        let mut push = |path: String, text: String, isolated| self.files.push(File { path, text, isolated });
        match kind {
            "document" => {
                let ending = if name.ends_with(['0', '2', '4', '6', '8']) { "json" } else { "yaml" };
                push(format!("documents/{name}.{ending}"), text(&value), isolated);
                let user = json!({"openapi": format!("../../documents/{name}.{ending}"), "prefix": name});
                push(format!("tools/native/{name}.yaml"), text(&user), isolated);
            }
            "helve" => push("helve.yaml".to_owned(), text(&value), isolated),
            kind => push(format!("{}/{name}.yaml", folder_of(kind)), text(&value), isolated),
        }
    }

    /// Samples as they are, so that what other files and command lines name is there.
    fn add_base(&mut self, samples: &[Sample]) {
        for sample in samples {
            let name = sample.value["name"].as_str();
            let path = match (sample.kind, name) {
                ("document", _) => "documents/base.json".to_owned(),
                ("openapi", _) => "tools/native/o0.yaml".to_owned(),
                ("helve", _) => continue,
                ("set", Some("s1")) => "configs/tool_sets/s1.yaml".to_owned(),
                (kind, name) => format!("{}/{}.yaml", folder_of(kind), name.unwrap_or_default()),
            };
            if self.files.iter().all(|file| file.path != path) {
                self.files.push(File { path, text: text(&sample.value), isolated: false });
            }
        }
    }

    /// Whether it is opened with a command of this scope.
    pub fn is_in(&self, scope: Scope) -> bool {
        match scope {
            Scope::Some => self.number < OPENED_WITH_ALL,
            Scope::Settings => self.files.iter().any(|file| file.path.starts_with("helve.")),
            Scope::All => true,
        }
    }

    /// The files that may be refused.
    pub fn may_be_refused(&self) -> Vec<&str> {
        self.files.iter().filter(|file| file.isolated).map(|file| file.path.as_str()).collect()
    }

    /// Writes the folder, with a program that leaves a mark and a store that somebody else prepared. Gives the id of a call in that store.
    pub fn write(&self, mark: &Path) -> (Project, String) {
        let project = Project::new(&[("run.sh", &format!("#!/bin/sh\ntouch {}\n", mark.display()))]);
        fs::set_permissions(project.folder.path().join("run.sh"), fs::Permissions::from_mode(0o755)).expect("a program");
        for file in &self.files {
            project.write(&file.path, file.text.as_bytes());
        }
        let task = plant(&project, self.number);
        (project, task)
    }
}

fn folder_of(kind: &str) -> &'static str {
    match kind {
        "command" => "tools/builtin",
        "native" | "openapi" => "tools/native",
        "mcp" => "tools/mcp",
        "set" => "tool_sets",
        "agent" => "agents",
        other => panic!("files of the kind {other} have no place"),
    }
}

fn text(value: &Value) -> String {
    // JSON is YAML.
    serde_json::to_string_pretty(value).expect("a text") + "\n"
}

/// A place for records that somebody else prepared, in one of five ways.
fn plant(project: &Project, way: usize) -> String {
    let (folder, store) = (project.folder.path().join(".helve"), project.folder.path().join(".helve/helve.db"));
    let link = |to: &str, from: &Path| symlink(to, from).expect("a link");
    let mut task = "call_01M7GH0NV0ASXMH73GMC4XK7KR".to_owned();
    match way % 5 {
        0 => {
            fs::create_dir(&folder).expect("a folder");
            for ending in ["helve.db", "helve.db-wal", "helve.db-shm", "helve.db-journal", "helve.db-lock", ".gitignore"] {
                link(&format!("../../outside-{ending}"), &folder.join(ending));
            }
        }
        1 => task = queue(project, &store),
        2 => {
            task = queue(project, &store);
            change(&store, "UPDATE tasks SET body = json_remove(body, '$.consent')");
            link("../../outside.gitignore", &folder.join(".gitignore"));
            fs::write(folder.join("helve.db-journal"), b"not a journal").expect("a file");
        }
        3 => link("../outside", &folder),
        _ => fs::create_dir_all(&store).expect("a folder"),
    }
    task
}

/// A store in the folder with a call that waits, as if its owner had made it. Gives the call's id.
fn queue(project: &Project, store: &Path) -> String {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let mut command = project.command(&["--store", &format!("sqlite:{}", store.display()), "tools", "call", "t0", "--yes", "--json"]);
    let said = command.env("HELVE_STATE_DIR", elsewhere.path().join("helve")).envs(VARIABLES.map(|name| (name, "x"))).output();
    let said = said.expect("helve runs").stdout;
    let accepted: Value = serde_json::from_slice(&said).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&said)));
    accepted["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}
