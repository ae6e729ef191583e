//! Paths, names and links in documents: each leads to something that is there.
//!
//! Decision records and the changelog tell what was, so only their links are checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use crate::pages::{blocks, files, is_a, read};

/// Documents for people who work on Helve: every path and every name in back-ticks is the project's.
const FOR_DEVELOPERS: [&str; 5] =
    ["ARCHITECTURE.md", "docs/invariants.md", "docs/reliability.md", "docs/walks.md", "docs/where-to-change-what.md"];

/// Folders of the project. Other paths in the guide are those of a user's project.
const FOLDERS: [&str; 5] = ["bench/", "bin/helve/", "crates/", "docs/", "examples/"];

/// Folders of the project and its crates that a user's project may have, too.
const USUAL_FOLDERS: [&str; 3] = ["scripts/", "src/", "tests/"];

/// Endings of files that documents name.
const ENDINGS: [&str; 9] = [".rs", ".md", ".yaml", ".toml", ".json", ".jsonl", ".py", ".stderr", ".sql"];

/// Names of other crates and languages: they are not looked for.
const FOREIGN: [&str; 11] = ["std", "tokio", "tower", "serde", "serde_json", "http", "schemars", "Default", "Serialize", "unwrap", "OFF"];

/// What looks like a path and is none of a file: a method of MCP, and a name that no file may have.
const NO_FILES: [&str; 2] = ["server/discover", "mod.rs"];

/// What stands in back-ticks in a text, outside of code blocks.
fn spans(text: &str) -> Vec<String> {
    let mut inside = false;
    let prose: Vec<_> = text
        .lines()
        .filter(|line| {
            let fence = line.starts_with("```");
            inside ^= fence;
            !inside && !fence
        })
        .collect();
    let prose = prose.join("\n").replace("``", "");
    prose.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")).collect()
}

/// The names such as `Executor::call` in the diagrams of a document.
fn names_in_diagrams(document: &str) -> Vec<String> {
    let diagrams = blocks(document).into_iter().filter(|block| block.language.is_empty()).map(|block| block.text);
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_:".contains(character);
    let names =
        |text: String| text.split(|character| !is_part(character)).map(|word| word.trim_matches(':').to_owned()).collect::<Vec<_>>();
    diagrams.flat_map(names).filter(|name| name.contains("::")).collect()
}

fn current_documents() -> Vec<String> {
    let past = |file: &String| file.starts_with("docs/adr/0") || file == "CHANGELOG.md";
    files().into_iter().filter(|file| is_a(file, "md") && !past(file) && !file.contains("/tests/")).collect()
}

/// `client/{launch,stdio}.rs` is two paths.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        None => vec![path.to_owned()],
        Some((before, (names, after))) => names.split(',').map(|name| format!("{before}{name}{after}")).collect(),
    }
}

fn is_path(span: &str) -> bool {
    if NO_FILES.contains(&span) {
        return false;
    }
    let characters = span.chars().all(|character| character.is_ascii_alphanumeric() || "._-/{},*".contains(character));
    characters
        && !span.starts_with('/')
        && (span.contains('/') || ENDINGS.iter().any(|ending| span.ends_with(ending) && span.len() > ending.len()))
}

/// Returns whether a file, or a folder of files, ends like this path. `*` is any name.
fn is_there(path: &str, files: &[String]) -> bool {
    let parts: Vec<_> = path.trim_end_matches('/').split('/').collect();
    let part_fits = |shown: &str, given: &str| match shown.split_once('*') {
        None => shown == given,
        Some((before, after)) => given.len() >= before.len() + after.len() && given.starts_with(before) && given.ends_with(after),
    };
    files.iter().any(|file| {
        let given: Vec<_> = file.split('/').collect();
        given.windows(parts.len()).enumerate().any(|(place, window)| {
            let is_folder = place + parts.len() < given.len();
            let is_meant = !is_folder || path.ends_with('/') || !parts[parts.len() - 1].contains('.');
            is_meant && parts.iter().zip(window).all(|(shown, given)| part_fits(shown, given))
        })
    })
}

/// What the Rust files of the project define: functions, types, constants, modules, and roughly variants and fields.
fn definitions(files: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    const KEYWORDS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_a(file, "rs") && !file.starts_with("tests/documents/")) {
        for line in read(file).lines() {
            let mut add = |name: &str| {
                found.entry(name.to_owned()).or_default().insert(file.clone());
            };
            let words: Vec<_> = line.split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| KEYWORDS.contains(&pair[0])) {
                add(identifier(pair[1]));
            }
            // A variant, a field, or an argument: a name at the start of a line.
            let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
            let name = identifier(line);
            let rest = &line[name.len()..];
            if !name.is_empty() && (rest.is_empty() || [":", ",", " {", "(", " ="].iter().any(|next| rest.starts_with(next))) {
                add(name);
            }
            // A word of the command line, of files or of JSON.
            for quoted in line.split('"').skip(1).step_by(2).filter(|quoted| !quoted.is_empty() && identifier(quoted) == *quoted) {
                add(quoted);
            }
        }
    }
    for file in files {
        let name = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if is_a(file, "rs") {
            found.entry(name.to_owned()).or_default().insert(file.clone());
        } else if file.ends_with("Cargo.toml") {
            let text = read(file);
            for name in text.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')) {
                found.entry(name.to_owned()).or_default().insert(file.clone());
                found.entry(name.replace('-', "_")).or_default().insert(file.clone());
            }
            for name in text.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name) {
                found.entry(name.to_owned()).or_default().insert(file.clone());
            }
        }
    }
    found
}

fn identifier(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len());
    &text[..end]
}

/// The segments of a name such as `Executor::call`, without what stands around it: `#[tool]`, `panic!`, `tools()`, `--local`.
fn segments(span: &str) -> Option<Vec<&str>> {
    let name =
        span.trim_start_matches("#[").trim_end_matches(']').trim_start_matches("--").trim_start_matches("dyn ").trim_end_matches("()");
    let name = name.split_once("::<").map_or(name, |(name, _)| name).trim_end_matches('!');
    let segments: Vec<_> = name.split("::").collect();
    let is_name = |segment: &&str| {
        !segment.is_empty() && segment.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
    };
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (begins && segments.iter().all(is_name)).then_some(segments)
}

/// What is missing of a name, if anything is. The last segment is defined in a file in which the one before it occurs.
fn missing(segments: &[&str], defined: &BTreeMap<String, BTreeSet<String>>, words: &mut Words) -> Option<String> {
    if FOREIGN.contains(&segments[0]) {
        return None;
    }
    if let Some(unknown) = segments.iter().find(|segment| !defined.contains_key(**segment)) {
        return Some(format!("there is no `{unknown}`"));
    }
    let [.., owner, last] = segments else { return None };
    // A derived method stands nowhere by its name.
    if *last == "default" {
        return None;
    }
    let crate_name = owner.starts_with("helve");
    let together = defined[*last].iter().any(|file| crate_name || file.contains(*owner) || words.of(file).contains(*owner));
    (!together).then(|| format!("`{last}` is not of `{owner}`"))
}

/// The words of files that were looked at.
#[derive(Default)]
struct Words(BTreeMap<String, BTreeSet<String>>);

impl Words {
    fn of(&mut self, file: &str) -> &BTreeSet<String> {
        let words = || read(file).split(|character: char| !character.is_alphanumeric() && character != '_').map(str::to_owned).collect();
        self.0.entry(file.to_owned()).or_insert_with(words)
    }
}

fn assert_none(wrong: &[String], what: &str) {
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

#[test]
fn every_path_in_a_document_is_there() {
    let files = files();
    let mut wrong = Vec::new();
    for document in current_documents() {
        let for_developers = FOR_DEVELOPERS.contains(&document.as_str());
        for span in spans(&read(&document)).into_iter().filter(|span| is_path(span)) {
            let begins = |folders: &[&str]| folders.iter().any(|folder| span.starts_with(folder));
            let is_ours = for_developers || begins(&FOLDERS) || (begins(&USUAL_FOLDERS) && !document.starts_with("docs/guide/"));
            let gone = |path: &String| is_ours && !is_there(path, &files);
            wrong.extend(alternatives(&span).into_iter().filter(gone).map(|path| format!("{document}: `{path}`")));
        }
    }
    assert_none(&wrong, "documents name files that are not there");
}

#[test]
fn every_name_in_a_document_is_defined() {
    let (defined, mut words, mut wrong) = (definitions(&files()), Words::default(), Vec::new());
    for document in current_documents() {
        let for_developers = FOR_DEVELOPERS.contains(&document.as_str());
        let diagrams = if for_developers { names_in_diagrams(&document) } else { Vec::new() };
        for span in spans(&read(&document)).into_iter().chain(diagrams) {
            if is_path(&span) || NO_FILES.contains(&span.as_str()) {
                continue;
            }
            let Some(segments) = segments(&span) else { continue };
            if for_developers || segments.len() > 1 {
                wrong.extend(missing(&segments, &defined, &mut words).map(|why| format!("{document}: `{span}`: {why}")));
            }
        }
    }
    assert_none(&wrong, "documents name things that are not there");
}

/// The anchor that a heading has.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|character| character.is_alphanumeric() || " -_".contains(*character));
    kept.map(|character| if character == ' ' { '-' } else { character }).collect()
}

#[test]
fn every_link_in_a_document_leads_somewhere() {
    let files: BTreeSet<_> = files().into_iter().collect();
    let mut wrong = Vec::new();
    for document in files.iter().filter(|file| is_a(file, "md") && !file.contains("/tests/")) {
        let text = read(document);
        for target in text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)) {
            if target.contains("://") || target.contains(' ') {
                continue;
            }
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { document.clone() } else { beside(document, path) };
            let is_folder = files.iter().any(|file| file.starts_with(&format!("{}/", path.trim_end_matches('/'))));
            if !files.contains(&path) && !is_folder {
                wrong.push(format!("{document}: {target}"));
            } else if !fragment.is_empty() && !read(&path).lines().any(|line| line.starts_with('#') && anchor(line) == fragment) {
                wrong.push(format!("{document}: {target}: no such heading"));
            }
        }
    }
    assert_none(&wrong, "links that lead nowhere");
}

/// A path that stands in a document, from the root.
fn beside(document: &str, path: &str) -> String {
    let mut parts: Vec<_> = Path::new(document).parent().into_iter().flat_map(Path::components).collect();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts.iter().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
