//! Functions as tools: one attribute each, registered at link time, and called as a model would call them.
//!
//! Run it with `cargo run -p helve --example functions`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use helve::prelude::*;
use serde::{Deserialize, Serialize};

/// Adds two numbers.
#[tool(idempotent)]
async fn add(
    /// The first number.
    a: i64,
    /// The second number.
    #[default(1)]
    b: i64,
) -> i64 {
    a + b
}

/// A shelf of the library.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Shelf {
    Novels,
    Science,
}

/// One book.
#[derive(Serialize, schemars::JsonSchema)]
struct Book {
    title: &'static str,
    year: u16,
}

/// Finds books by a word in their title.
#[tool(idempotent, cache = "5m", output)]
fn find_books(
    /// A word in the title.
    word: String,
    /// Search only this shelf; all shelves if omitted.
    shelf: Option<Shelf>,
) -> Vec<Book> {
    let science = [Book { title: "On the Origin of Species", year: 1859 }];
    let novels = [Book { title: "The Time Machine", year: 1895 }, Book { title: "Around the Moon", year: 1869 }];
    let books: Vec<Book> = match shelf {
        Some(Shelf::Science) => science.into(),
        Some(Shelf::Novels) => novels.into(),
        None => science.into_iter().chain(novels).collect(),
    };
    books.into_iter().filter(|book| book.title.to_lowercase().contains(&word.to_lowercase())).collect()
}

/// Empties a shelf. Needs a person's approval.
#[tool(permission = "confirm")]
async fn clear_shelf(
    /// The shelf to empty.
    shelf: Shelf,
) -> Result<String, ToolError> {
    match shelf {
        Shelf::Novels => Ok("The novels are gone.".into()),
        Shelf::Science => Err(ToolError::failed("the science shelf is locked")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let helve = Helve::new();
    helve.catalogue().register_all(helve::tool::function::linked(module_path!()))?;

    for (tool, arguments) in [
        ("add", json!({"a": 41})),
        ("add", json!({"a": "forty-one"})),
        ("find_books", json!({"word": "the"})),
        ("find_books", json!({"word": "the"})),
        ("clear_shelf", json!({"shelf": "novels"})),
        ("clear_shelves", json!({})),
    ] {
        let outcome = helve.call(tool, arguments.clone()).await;
        println!("{tool}({arguments})\n  → {}", outcome.text());
    }
    Ok(())
}
