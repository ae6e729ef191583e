//! The invariants of ARCHITECTURE.md, checked from `cargo metadata` and the files themselves.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod dependencies;
mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// What a crate is, and so what it may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Words and rules; no input or output.
    Inside,
    /// One way to the outside world.
    Edge,
    /// What several edges need.
    Shared,
    /// What people touch.
    Face,
    /// Only for tests and measurements.
    Tests,
}

use Place::{Edge, Face, Inside, Shared, Tests};

const PLACES: [(&str, Place); 22] = [
    ("helve-agent", Inside),
    ("helve-core", Inside),
    ("helve-dialect", Inside),
    ("helve-macros", Inside),
    ("helve-tools", Inside),
    ("helve-builtins", Edge),
    ("helve-command", Edge),
    ("helve-http", Edge),
    ("helve-mcp", Edge),
    ("helve-models", Edge),
    ("helve-project", Edge),
    ("helve-store", Edge),
    ("helve-fetch", Shared),
    ("helve-files", Shared),
    ("helve-mcp-wire", Shared),
    ("helve-process", Shared),
    ("helve", Face),
    ("helve-cli", Face),
    ("helve-testkit", Tests),
    ("helve-bench", Tests),
    ("helve-agent-loop", Tests),
    ("helve-torture", Tests),
];

/// Crates that do input or output, or start something that does. Inside crates must not use them.
const WORLDLY: [&str; 12] = [
    "axum",
    "hyper",
    "reqwest",
    "rusqlite",
    "tokio-postgres",
    "tokio-tungstenite",
    "rmcp",
    "anstream",
    "clap",
    "terminal_size",
    "fend-core",
    "tracing-subscriber",
];

/// Features of tokio that reach outside the process.
const WORLDLY_TOKIO: [&str; 5] = ["fs", "full", "io-std", "net", "process"];

fn root() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is"))
        .join("../..")
        .canonicalize()
        .expect("the root of the workspace")
}

fn metadata() -> Metadata {
    // Nothing is fetched, so only what this machine builds with is looked at.
    let version = Command::new("rustc").arg("-vV").output().expect("rustc runs").stdout;
    let version = String::from_utf8_lossy(&version).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host").to_owned();
    let options = ["--offline".to_owned(), "--filter-platform".to_owned(), host];
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).other_options(options).exec().expect("cargo metadata")
}

fn place(package: &str) -> Option<Place> {
    PLACES.iter().find(|(name, _)| *name == package).map(|(_, place)| *place)
}

fn members(metadata: &Metadata) -> Vec<&Package> {
    metadata.workspace_packages()
}

/// Every Rust file of the project, with its path from the root.
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if entry.is_dir() && !name.starts_with('.') && name != "target" {
                walk(&entry, found);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                found.push(entry);
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root, &mut found);
    let read = |path: PathBuf| {
        let name = path.strip_prefix(&root).expect("inside the root").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("a readable file"))
    };
    found.into_iter().map(read).collect()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.starts_with("tests/") || path.ends_with("/tests.rs")
}

fn assert_none(broken: &[String], invariant: &str) {
    assert!(broken.is_empty(), "{invariant}\n  {}", broken.join("\n  "));
}

#[test]
fn every_crate_has_its_place() {
    let metadata = metadata();
    let unplaced: Vec<_> =
        members(&metadata).iter().filter(|package| place(&package.name).is_none()).map(|package| package.name.to_string()).collect();
    assert_none(&unplaced, "a new crate needs a row in PLACES and in ARCHITECTURE.md:");
}

#[test]
fn crates_know_only_what_their_place_allows() {
    let metadata = metadata();
    let mut broken = Vec::new();
    for package in members(&metadata) {
        let Some(own) = place(&package.name) else { continue };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal) {
            let Some(other) = place(&dependency.name) else { continue };
            let allowed = match own {
                Inside => other == Inside,
                Edge | Shared => dependency.name == "helve-core" || dependency.name == "helve-macros" || other == Shared,
                Face => other != Tests,
                Tests => true,
            };
            if !allowed {
                broken.push(format!("{} ({own:?}) depends on {} ({other:?})", package.name, dependency.name));
            }
        }
    }
    assert_none(&broken, "inside crates know no edge, and edges know only core and what is shared:");
}

#[test]
fn inside_crates_do_no_input_or_output() {
    let metadata = metadata();
    let mut broken = Vec::new();
    for package in members(&metadata).into_iter().filter(|package| place(&package.name) == Some(Inside)) {
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal) {
            if WORLDLY.contains(&dependency.name.as_str()) {
                broken.push(format!("{} depends on {}", package.name, dependency.name));
            }
            let outside = dependency.features.iter().find(|feature| WORLDLY_TOKIO.contains(&feature.as_str()));
            if let Some(feature) = outside.filter(|_| dependency.name == "tokio") {
                broken.push(format!("{} uses tokio's `{feature}`", package.name));
            }
        }
    }
    let inside = |path: &str| {
        ["crates/core/src", "crates/tools/src", "crates/macros/src", "crates/dialect/src", "crates/agent/src"]
            .iter()
            .any(|folder| path.starts_with(folder))
    };
    for (path, text) in sources().into_iter().filter(|(path, _)| inside(path)) {
        for reach in ["std::fs", "std::net", "std::process", "tokio::fs", "tokio::net", "tokio::process"] {
            if text.lines().any(|line| line.contains(reach) && !line.trim_start().starts_with("//")) {
                broken.push(format!("{path} uses {reach}"));
            }
        }
    }
    assert_none(&broken, "inside crates do no IO:");
}

/// The command keeps its variables elsewhere than where `std::env` looks.
#[test]
fn variables_are_read_in_one_place() {
    let ours = |path: &str| {
        let is_source = (path.starts_with("crates/") || path.starts_with("bin/")) && path.contains("/src/");
        let reads_the_real_ones = ["crates/core/src/environment.rs", "bin/helve/src/environment.rs"].contains(&path);
        is_source && !reads_the_real_ones && !path.starts_with("crates/testkit") && !is_test(path)
    };
    let broken: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| ours(path) && text.lines().take_while(|line| *line != "#[cfg(test)]").any(|line| line.contains("env::var")))
        .map(|(path, _)| path)
        .collect();
    assert_none(&broken, "variables are read through `helve_core::environment`:");
}

/// Faces that match on admission themselves would each have a loop of their own.
#[test]
fn calls_enter_by_one_door() {
    let ours = |path: &str| (path.starts_with("crates/") || path.starts_with("bin/")) && path.contains("/src/") && !is_test(path);
    let of = |what: &str| -> Vec<String> {
        let lines = |(path, text): &(String, String)| vec![path.clone(); text.matches(what).count()];
        sources().iter().filter(|(path, _)| ours(path)).flat_map(lines).collect()
    };
    let door = "crates/tools/src/call.rs";
    assert_eq!(of(".admit("), [door]);
    assert_eq!(of("Admission::Ready(prepared) =>"), [door]);
    let mut attempts = of(".attempt(prepared");
    attempts.sort();
    assert_eq!(
        attempts,
        [door, "crates/tools/src/durable/approved.rs", "crates/tools/src/durable/worker.rs"],
        "approved and queued calls were admitted before"
    );
}

/// One policy: what people fill in is open, and complete with `..Default::default()`; what they match on may grow.
#[test]
fn options_are_open_and_errors_may_grow() {
    let mut broken = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/")) {
        let mut may_grow = false;
        for line in text.lines() {
            let name = |kind: &str| line.strip_prefix(kind)?.split(|c: char| !c.is_alphanumeric()).next();
            if let Some(name) = name("pub struct ")
                && ["Options", "Limits", "Filter", "Choice", "Rule", "Rules", "Selection"].iter().any(|end| name.ends_with(end))
                && may_grow
            {
                broken.push(format!("{path}: {name} is not open"));
            }
            if let Some(name) = name("pub enum ")
                && name.ends_with("Error")
                && !line.contains('<')
                && !may_grow
            {
                broken.push(format!("{path}: {name} may not grow"));
            }
            may_grow = line == "#[non_exhaustive]" || (may_grow && line.starts_with("#["));
        }
    }
    assert_none(&broken, "options are open structs, errors are `#[non_exhaustive]`:");
}

#[test]
fn only_compose_names_all_parts() {
    let metadata = metadata();
    let edges: Vec<String> = members(&metadata)
        .iter()
        .filter(|package| place(&package.name) == Some(Edge))
        .map(|package| package.name.replace('-', "_"))
        .collect();
    let mut broken = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.starts_with("crates/helve/src") || path.starts_with("bin/helve/src"))
    {
        let named = edges.iter().find(|edge| text.contains(edge.as_str()));
        if let Some(edge) = named.filter(|_| !path.starts_with("crates/helve/src/compose")) {
            broken.push(format!("{path} names {edge}"));
        }
    }
    assert_none(&broken, "only compose.rs and its folder name concrete edges:");
}
