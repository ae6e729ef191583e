//! OpenAPI 3 import: every operation becomes an [`HttpDefinition`] or is skipped with a reason.
//!
//! The document is untrusted: everything taken from it is bounded, cleaned and checked. Nothing is read or fetched here; the caller parses
//! the document, and the tools run like hand-written ones.

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

/// Maximum number of operations in one import.
const MAX_TOOLS: usize = 1_000;

/// The result of an OpenAPI import.
#[derive(Debug, Clone, Default)]
pub struct OpenApiImport {
    /// One tool per selected operation that can be called.
    pub tools: Vec<HttpDefinition>,
    /// Selected operations that cannot be called, in document order.
    pub skipped: Vec<SkippedOperation>,
    /// How tools differ from the document: renamed tools, omitted parameters.
    pub notes: Vec<ImportNote>,
}

/// An operation that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedOperation {
    /// Its `operationId`, or its method and path.
    pub operation: String,
    /// The reason.
    pub reason: String,
}

/// A difference between a tool and its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportNote {
    /// The tool's `operationId`, or its method and path.
    pub operation: String,
    /// The difference, as a sentence.
    pub message: String,
}

/// Why an operation cannot be imported.
enum Obstacle {
    /// Its inlined schemas are too large; the import is repeated with references.
    TooLarge,
    /// The operation is skipped for this reason.
    Reason(String),
    /// The definition has to change.
    Definition(FieldError),
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

/// Converts the operations of an OpenAPI 3.0 or 3.1 document to tools.
///
/// Tool names, and therefore the meaning of `include`, do not depend on the order of the document or on other filters.
///
/// # Errors
/// If the document is not OpenAPI 3, or the definition selects something it does not have. The error's path points into the definition.
pub fn import(definition: &OpenApiDefinition, document: &Value) -> Result<OpenApiImport, FieldError> {
    let document = Document::new(document)?;
    let room = names::room(definition.selection.prefix.as_deref())?;
    let found = document.operations()?;
    let names = names::allocate(&found.operations, room);
    let chosen = select::choose(definition, &found.operations, &names)?;
    if chosen.len() > MAX_TOOLS {
        let message = format!("the document has {} operations; at most {MAX_TOOLS} can be imported at once", chosen.len());
        return Err(FieldError::new("/openapi", message).hint("select some with `include` or `tags`"));
    }
    let mut result = OpenApiImport::default();
    if definition.selection.include.is_empty() && definition.tags.is_empty() {
        result.skipped = found.unreadable;
    }
    let mut importer = Importer::new(definition, &document, Patterns::default());
    for chosen in chosen {
        let operation = &found.operations[chosen.index];
        let skip = |reason: String| SkippedOperation { operation: operation.label(), reason };
        let Some(called) = &names[chosen.index] else {
            result.skipped.push(skip("its name clashes with another operation".into()));
            continue;
        };
        if operation.is_deprecated() && !chosen.by_name {
            result.skipped.push(skip(format!("it is deprecated; import it with `include: [{}]`", called.name)));
            continue;
        }
        match importer.tool(operation, &called.name) {
            Ok((tool, messages)) => {
                let messages = called.why.clone().into_iter().chain(messages);
                result.notes.extend(messages.map(|message| ImportNote { operation: operation.label(), message }));
                result.tools.push(tool);
            }
            Err(Obstacle::Reason(reason)) => result.skipped.push(skip(reason)),
            Err(Obstacle::TooLarge) => result.skipped.push(skip("its schemas are too large".into())),
            Err(Obstacle::Definition(error)) => return Err(error),
        }
    }
    Ok(result)
}
