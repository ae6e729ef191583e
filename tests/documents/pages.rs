//! The documents of the project and the blocks in them.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no files of the project.
const FOREIGN: [&str; 2] = ["node_modules", "target"];

/// A code block of a document, with the comments that stand directly before it.
#[derive(Debug)]
pub struct Block {
    pub document: String,
    /// The line on which the block begins.
    pub line: usize,
    /// What follows the fence, such as `rust` or `rust,no_run`.
    pub language: String,
    pub text: String,
    comments: Vec<String>,
}

impl Block {
    /// The value of a comment such as `<!-- before: helve init . -->` that stands before the block.
    pub fn comment(&self, key: &str) -> Option<&str> {
        self.comments.iter().find_map(|comment| Some(comment.strip_prefix(key)?.strip_prefix(':')?.trim()))
    }

    /// The file that the block is, if its first line is a comment with a path.
    pub fn file(&self) -> Option<&str> {
        let first = self.text.lines().next()?;
        let path = first.strip_prefix("# ").or_else(|| first.strip_prefix("// "))?.split_whitespace().next()?;
        let extension = Path::new(path).extension()?;
        (["yaml", "py", "json"].iter().any(|known| extension == *known) && !path.contains(':')).then_some(path)
    }

    pub fn place(&self) -> String {
        format!("{}:{}", self.document, self.line)
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root of the workspace")
}

/// Every file of the project, by its path from the root.
pub fn files() -> Vec<String> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with('.') || FOREIGN.contains(&name) {
                continue;
            }
            if entry.is_dir() {
                walk(&entry, root, found);
            } else {
                found.push(entry.strip_prefix(root).expect("inside the root").to_string_lossy().into_owned());
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort();
    found
}

/// Returns whether a file is of a kind, such as `rs`.
pub fn is_a(file: &str, extension: &str) -> bool {
    Path::new(file).extension().is_some_and(|found| found == extension)
}

pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of a document, in their order.
pub fn blocks(document: &str) -> Vec<Block> {
    let text = read(document);
    let mut lines = text.lines().zip(1..);
    let (mut found, mut comments) = (Vec::new(), Vec::new());
    while let Some((line, number)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<_> = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```").collect();
            let block = Block {
                document: document.to_owned(),
                line: number,
                language: language.to_owned(),
                text: inside.join("\n"),
                comments: std::mem::take(&mut comments),
            };
            found.push(block);
        } else if let Some(comment) = line.strip_prefix("<!--") {
            let mut whole = comment.to_owned();
            while !whole.contains("-->") {
                let (line, _) = lines.next().expect("a comment has an end");
                whole = format!("{whole}\n{line}");
            }
            comments.push(whole.replace("-->", "").trim().to_owned());
        } else if !line.is_empty() {
            comments.clear();
        }
    }
    found
}

/// README.md and the pages of the guide: what users follow.
pub fn user_documents() -> Vec<String> {
    files().into_iter().filter(|file| file == "README.md" || (file.starts_with("docs/guide/") && is_a(file, "md"))).collect()
}
