//! Tools with state: methods that share an index of words.
//!
//! Run it with `cargo run -p helve --example stateful_tool`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve::prelude::*;

#[derive(Default)]
struct Index {
    words: Mutex<HashMap<String, usize>>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Indexed {
    files: usize,
    different_words: usize,
}

#[tools]
impl Index {
    /// Reads files and counts their words.
    #[tool(output, validate = check_paths)]
    fn index_files(
        &self,
        /// The paths of the files.
        paths: Vec<String>,
        cx: &CallContext,
    ) -> helve::Result<Indexed> {
        for path in &paths {
            if cx.is_cancelled() {
                return Err(ToolError::cancelled().into());
            }
            cx.progress(None, format!("reading {path}"));
            let text = std::fs::read_to_string(path)?;
            for word in text.split_whitespace() {
                *self.words().entry(word.to_lowercase()).or_default() += 1;
            }
        }
        Ok(Indexed { files: paths.len(), different_words: self.words().len() })
    }

    /// Returns how often a word occurs.
    #[tool(idempotent)]
    async fn count_word(&self, word: String) -> usize {
        self.words().get(&word.to_lowercase()).copied().unwrap_or_default()
    }

    fn words(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the arguments before a person is asked for approval.
fn check_paths(paths: &[String]) -> helve::Result<()> {
    if paths.is_empty() { Err("name at least one file".into()) } else { Ok(()) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let index = Arc::new(Index::default());
    let helve = Helve::new();
    // For an agent: `agent.register_tools(index.clone())`.
    helve.catalogue().register_all(index.clone())?;

    for (tool, arguments) in [
        ("index_files", json!({"paths": []})),
        ("index_files", json!({"paths": ["no such file"]})),
        ("index_files", json!({"paths": [concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]})),
        ("count_word", json!({"word": "workspace"})),
    ] {
        println!("{tool}\n  → {}", helve.call(tool, arguments).await.text());
    }
    println!("The program itself sees {} words.", index.words().len());
    Ok(())
}
