//! Files: their length, their opening, what a `lib.rs` holds, and that every decision is in the index.

use std::collections::BTreeMap;
use std::fs;

use super::{assert_none, members, metadata, root, sources};

const MAX_LINES: usize = 400;

/// The lines of a file before its tests.
fn lines_without_tests(text: &str) -> usize {
    text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

#[test]
fn files_are_short_and_say_what_they_own() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let lines = lines_without_tests(&text);
        // The scanner is one state machine, and its tests are tables.
        if lines > MAX_LINES && !path.starts_with("crates/dialect/") {
            broken.push(format!("{path} has {lines} lines without its tests"));
        }
        let part_of_another = path.ends_with("/tests.rs") || path.contains("/tests/ui/");
        if !text.starts_with("//! ") && !part_of_another {
            broken.push(format!("{path} does not open with a `//!` sentence"));
        }
        if path.ends_with("/mod.rs") {
            broken.push(format!("{path}: `foo.rs` beside `foo/` instead of `mod.rs`"));
        }
    }
    assert_none(&broken, "files are short and open with what they own:");
}

#[test]
fn lib_files_only_re_export() {
    let mut broken = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.ends_with("src/lib.rs") && path.starts_with("crates/")) {
        // Procedural macros must stand in their lib.rs, and one function of an edge may be its whole surface.
        let starting =
            |word: &str| text.lines().take_while(|line| *line != "#[cfg(test)]").filter(|line| line.trim_start().starts_with(word)).count();
        let functions = starting("pub fn ") - starting("#[proc_macro");
        let types = text
            .lines()
            .filter(|line| ["pub struct ", "pub enum ", "pub trait ", "impl "].iter().any(|item| line.starts_with(item)))
            .count();
        if functions > 1 || types > 0 {
            broken.push(format!("{path} defines {functions} functions and {types} types"));
        }
    }
    assert_none(&broken, "`lib.rs` only declares and re-exports:");
}

#[test]
fn nothing_is_unsafe_and_lints_are_on() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    for lint in ["unsafe_code = \"forbid\"", "unwrap_used = \"warn\"", "expect_used = \"warn\"", "panic = \"warn\""] {
        assert!(manifest.contains(lint), "{lint} must stay");
    }
    let metadata = metadata();
    let mut broken = Vec::new();
    for package in members(&metadata) {
        let text = fs::read_to_string(&package.manifest_path).expect("a manifest");
        if !text.contains("[lints]\nworkspace = true") {
            broken.push(format!("{} does not take the workspace's lints", package.name));
        }
    }
    for (path, text) in sources().into_iter().filter(|(path, _)| !path.starts_with("tests/architecture/") && !path.contains("/tests/")) {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let words: Vec<_> = line.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
            if words.contains(&"unsafe") && !line.contains("unsafe(") && !line.contains('"') && !line.contains("`unsafe`") {
                broken.push(format!("{path}:{} says unsafe", number + 1));
            }
        }
    }
    assert_none(&broken, "no unsafe code, the same lints everywhere:");
}

#[test]
fn every_decision_is_in_the_index() {
    let folder = root().join("docs/adr");
    let index = fs::read_to_string(folder.join("README.md")).expect("docs/adr/README.md");
    let mut by_number: BTreeMap<String, String> = BTreeMap::new();
    for entry in fs::read_dir(&folder).expect("docs/adr") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        assert!(index.contains(&name), "{name} is not in docs/adr/README.md");
        let number = name.split('-').next().unwrap_or_default().to_owned();
        if let Some(other) = by_number.insert(number, name.clone()) {
            panic!("{name} and {other} have the same number");
        }
    }
    assert!(by_number.len() >= 8, "the choices that are dangerous are written down");
}
