//! Imports OpenAPI 3 documents: converts each operation to an [`HttpDefinition`], or skips it with a reason.
//!
//! The document is untrusted, so its contents are limited, cleaned and checked. This module reads no files and sends no requests: the
//! caller parses the document, and the tools run like those defined by hand.

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
    /// The tools: one for each selected operation that can be called.
    pub tools: Vec<HttpDefinition>,
    /// Selected operations that cannot be called, in document order.
    pub skipped: Vec<SkippedOperation>,
    /// Notes on how tools differ from the document, such as renamed tools and omitted parameters.
    pub notes: Vec<ImportNote>,
}

/// An operation that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedOperation {
    /// The `operationId` of the operation, or its method and path.
    pub operation: String,
    /// Why the operation was skipped.
    pub reason: String,
}

/// A note on how a tool differs from the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportNote {
    /// The `operationId` of the tool's operation, or its method and path.
    pub operation: String,
    /// The difference, as a sentence for people.
    pub message: String,
}

/// Why an operation cannot be imported.
enum Obstacle {
    /// The inlined schemas are too large. The operation is converted again with references.
    TooLarge,
    /// The operation must be skipped for this reason.
    Reason(String),
    /// The import as a whole fails, because the definition has an error.
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
/// Returns an error if the document is not OpenAPI 3, or the definition selects an operation or tag that the document does not have.
/// The error contains the JSON pointer of a field in the definition.
pub fn import(definition: &OpenApiDefinition, document: &Value) -> Result<OpenApiImport, FieldError> {
    let document = Document::new(document)?;
    let room = names::room(definition.selection.prefix.as_deref())?;
    let found = document.operations()?;
    let names = names::allocate(&found.operations, room);
    let chosen = select::choose(definition, &found.operations, &names)?;
    if chosen.len() > MAX_TOOLS {
        let message = format!("the document has {} operations; at most {MAX_TOOLS} can be imported at once", chosen.len());
        return Err(FieldError::new("/openapi", message).hint("select operations with `include` or `tags`"));
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
            result.skipped.push(skip("its name conflicts with that of another operation".into()));
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
