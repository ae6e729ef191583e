//! Selects operations by name, pattern or tag. A name or tag that matches no operation is an error.

use std::collections::BTreeSet;

use helve_core::Pattern;
use helve_core::authored::FieldError;
use helve_core::suggest::nearest;

use super::document::{Operation, shown};
use super::names::ToolName;
use crate::definition::OpenApiDefinition;

/// A selected operation.
pub(super) struct SelectedOperation {
    /// The index of the operation in the document.
    pub index: usize,
    /// Whether the operation was selected by its exact name.
    pub by_name: bool,
}

/// Returns the selected operations in document order.
pub(super) fn choose(
    definition: &OpenApiDefinition,
    operations: &[Operation<'_>],
    names: &[Option<ToolName>],
) -> Result<Vec<SelectedOperation>, FieldError> {
    let called = |index: usize| names[index].as_ref().map(|named| named.name.as_str());
    let meets =
        |pattern: &Pattern, index: usize| [called(index), operations[index].id].into_iter().flatten().any(|name| pattern.matches(name));
    let every = 0..operations.len();
    for (at, pattern) in definition.selection.include.iter().enumerate().filter(|(_, pattern)| pattern.is_literal()) {
        if !every.clone().any(|index| meets(pattern, index)) {
            let known = every.clone().filter_map(called).chain(operations.iter().filter_map(|operation| operation.id));
            let near = nearest(pattern.as_str(), known);
            return Err(no_match(&format!("/include/{at}"), "operation", pattern.as_str(), near));
        }
    }
    let tags: BTreeSet<&str> = operations.iter().flat_map(Operation::tags).collect();
    if let Some((at, tag)) = definition.tags.iter().enumerate().find(|(_, tag)| !tags.contains(tag.as_str())) {
        return Err(no_match(&format!("/tags/{at}"), "tag", tag, nearest(tag, tags.iter().copied())));
    }
    let chosen = every.filter_map(|index| {
        let tagged = definition.tags.is_empty() || operations[index].tags().any(|tag| definition.tags.iter().any(|wanted| wanted == tag));
        let selected = definition.selection.selects_by(|pattern| meets(pattern, index));
        let by_name = definition.selection.include.iter().any(|pattern| pattern.is_literal() && meets(pattern, index));
        (tagged && selected).then_some(SelectedOperation { index, by_name })
    });
    Ok(chosen.collect())
}

fn no_match(path: &str, what: &str, written: &str, near: Option<&str>) -> FieldError {
    let error = FieldError::new(path, format!("the document has no {what} `{}`", shown(written)));
    match near {
        Some(near) => error.hint(format!("did you mean `{}`?", shown(near))),
        None => error,
    }
}
