//! The words of ARCHITECTURE.md: each has the public type that the table names, and no other name for the same idea comes back.

use crate::pages::{files, is_a, read};

/// A row of the table: a word, the types that carry it, and names that would be a second word for it.
struct Row {
    word: String,
    types: Vec<String>,
    others: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text = read("ARCHITECTURE.md");
    let table = text.split_once("\n## Words\n").expect("a section on words").1;
    let table = table.split("\n## ").next().unwrap_or_default();
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let row = |cells: Vec<String>| match &cells[..] {
        [word, types, _, others] => Row {
            word: word.clone(),
            types: types.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
            others: others.split(", ").filter(|other| !other.is_empty()).map(|other| other.trim_matches('`').to_owned()).collect(),
        },
        _ => panic!("a row of four cells: {cells:?}"),
    };
    table.lines().filter(|line| line.starts_with('|')).skip(2).map(|line| row(cells(line))).collect()
}

/// The names of public types, with their files.
fn public_types() -> Vec<(String, String)> {
    let declared = |line: &str| {
        let rest =
            ["pub struct ", "pub enum ", "pub trait ", "pub type "].iter().find_map(|start| line.trim_start().strip_prefix(start))?;
        let end = rest.find(|character: char| !character.is_alphanumeric()).unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    };
    let sources = files().into_iter().filter(|file| is_a(file, "rs") && file.starts_with("crates/") && file.contains("/src/"));
    sources.flat_map(|file| read(&file).lines().filter_map(declared).map(|name| (name, file.clone())).collect::<Vec<_>>()).collect()
}

#[test]
fn every_word_has_its_type() {
    let (rows, types) = (rows(), public_types());
    assert!(rows.len() > 10, "the table of words is not found");
    for row in &rows {
        assert!(!row.types.is_empty(), "the word `{}` names no type", row.word);
        for name in &row.types {
            assert!(types.iter().any(|(known, _)| known == name), "the word `{}` names `{name}`, which is no public type", row.word);
        }
    }
}

#[test]
fn no_idea_has_a_second_word() {
    let types = public_types();
    for row in rows() {
        for other in &row.others {
            let found = types.iter().find(|(known, _)| known == other);
            assert!(found.is_none(), "{found:?}: the word for this is `{}`", row.word);
        }
    }
}
