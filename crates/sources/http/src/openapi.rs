//! OpenAPI 3 documents as tools: every operation becomes an [`HttpDefinition`], or is skipped with the reason.
//!
//! The document is a stranger's: everything taken from it is bounded, cleaned and checked. Nothing is read or fetched
//! here; the caller parses the document, and the tools are run like those that people write by hand.

mod arguments;
mod body;
mod document;
mod names;
mod parameters;
mod schema;
mod select;
mod servers;
mod text;
mod tool;

use helve_core::authored::FieldError;
use serde_json::Value;

use self::document::Document;
use self::schema::Patterns;
use self::tool::Importer;
use crate::definition::{HttpDefinition, OpenApiDefinition};

/// Operations that one import may bring: more tools than that help no agent.
const MAX_TOOLS: usize = 1_000;

/// What an OpenAPI document brought.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// One tool for each operation that was asked for and can be called.
    pub tools: Vec<HttpDefinition>,
    /// Operations that were asked for and cannot be called, in the order of the document.
    pub skipped: Vec<Skipped>,
    /// What is different from the document: names that had to change, parameters that were left out.
    pub notes: Vec<Note>,
}

/// An operation that did not become a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its `operationId`, or its method and path.
    pub operation: String,
    /// Why.
    pub reason: String,
}

/// Something about a tool that its document does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The `operationId` of the tool, or its method and path.
    pub operation: String,
    /// What is different, as a whole sentence.
    pub message: String,
}

/// Why an operation cannot become a tool.
enum Obstacle {
    /// Written out in full, its schemas would be too large; references are tried next.
    TooLarge,
    /// It is skipped, with this reason.
    Reason(String),
    /// The definition itself has to change.
    Definition(FieldError),
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

/// Makes tools of the operations of an OpenAPI 3.0 or 3.1 document.
///
/// Names, and thereby what `include` means, do not depend on the order of the document, nor on the other filters.
///
/// # Errors
/// Where the document is none, or the definition asks for something that is not in it. The path of the error points
/// into the definition.
pub fn import(definition: &OpenApiDefinition, document: &Value) -> Result<Imported, FieldError> {
    let document = Document::new(document)?;
    let room = names::room(definition.prefix.as_deref())?;
    let listed = document.operations()?;
    let names = names::allocate(&listed.operations, room);
    let chosen = select::choose(definition, &listed.operations, &names)?;
    if chosen.len() > MAX_TOOLS {
        let message = format!("the document has {} operations; at most {MAX_TOOLS} can be imported at once", chosen.len());
        return Err(FieldError::new("/openapi", message).hint("choose some with `include` or `tags`"));
    }
    let mut brought = Imported::default();
    if definition.include.is_empty() && definition.tags.is_empty() {
        brought.skipped = listed.unreadable;
    }
    let mut importer = Importer::new(definition, &document, Patterns::default());
    for chosen in chosen {
        let operation = &listed.operations[chosen.index];
        let skip = |reason: String| Skipped { operation: operation.label(), reason };
        let Some(called) = &names[chosen.index] else {
            brought.skipped.push(skip("its name cannot be told apart from another".into()));
            continue;
        };
        if operation.is_deprecated() && !chosen.by_name {
            brought.skipped.push(skip(format!("it is deprecated; `include: [{}]` brings it in by name", called.name)));
            continue;
        }
        match importer.tool(operation, &called.name) {
            Ok((tool, messages)) => {
                let messages = called.why.clone().into_iter().chain(messages);
                brought.notes.extend(messages.map(|message| Note { operation: operation.label(), message }));
                brought.tools.push(tool);
            }
            Err(Obstacle::Reason(reason)) => brought.skipped.push(skip(reason)),
            Err(Obstacle::TooLarge) => brought.skipped.push(skip("its schemas are too large".into())),
            Err(Obstacle::Definition(error)) => return Err(error),
        }
    }
    Ok(brought)
}
