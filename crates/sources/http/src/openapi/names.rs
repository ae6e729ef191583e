//! Derives names of tools and arguments that all model providers accept.

use std::collections::HashMap;

use helve_core::Digest;
use helve_core::authored::FieldError;

use super::document::{Operation, shown};

/// Maximum length of a tool or argument name that all providers accept, in bytes.
pub(super) const MAX_NAME: usize = 64;
/// Maximum length of a prefix, in bytes.
const MAX_PREFIX: usize = 32;
/// Number of naming schemes, from the simplest name to a unique one.
const LEVELS: usize = 5;

/// The tool name of an operation, without the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolName {
    pub name: String,
    /// Why the name differs from the name in the document, if it does.
    pub why: Option<String>,
}

/// Returns the maximum length of a name without the prefix. Fails if the prefix is invalid.
pub(super) fn room(prefix: Option<&str>) -> Result<usize, FieldError> {
    let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) else { return Ok(MAX_NAME) };
    if prefix.len() > MAX_PREFIX {
        return Err(FieldError::new("/prefix", format!("a prefix can have at most {MAX_PREFIX} characters")));
    }
    let plain = snake(prefix);
    if plain != prefix || !prefix.starts_with(|first: char| first.is_ascii_lowercase()) {
        let error = FieldError::new(
            "/prefix",
            "a prefix must start with a letter and contain only lowercase letters, digits and single underscores",
        );
        return Err(if plain.is_empty() { error } else { error.hint(format!("write `{}`", lettered(plain, "api"))) });
    }
    Ok(MAX_NAME - prefix.len() - 1)
}

/// Gives every operation a unique name that does not depend on the order of operations. The name is `None` if all naming schemes conflict.
///
/// If several operations would have the same name, all of them get another one.
pub(super) fn allocate(operations: &[Operation<'_>], room: usize) -> Vec<Option<ToolName>> {
    let wanted: Vec<String> = operations.iter().map(wanted).collect();
    let mut levels = vec![0; operations.len()];
    let name = |index: usize, level: usize| at_level(&operations[index], &wanted[index], level, room);
    let mut names: Vec<String> = (0..operations.len()).map(|index| name(index, 0)).collect();
    for _ in 0..2 * LEVELS {
        let mut clashing = Vec::new();
        for group in groups(&names).into_values().filter(|group| group.len() > 1) {
            // An operation whose name was not changed keeps it; only those with changed names get another one.
            let any_changed = group.iter().any(|index| levels[*index] > 0);
            clashing.extend(group.into_iter().filter(|index| !any_changed || levels[*index] > 0));
        }
        if clashing.is_empty() {
            break;
        }
        for index in clashing {
            levels[index] = (levels[index] + 1).min(LEVELS - 1);
            names[index] = name(index, levels[index]);
        }
    }
    let owners = groups(&names);
    let finish = |(index, name): (usize, &String)| {
        let first = owners.get(name).and_then(|group| group.first()) == Some(&index);
        let why = if levels[index] > 0 {
            Some(format!("Named `{name}`, because several operations would be named `{}`.", cut(&wanted[index], room)))
        } else if *name != wanted[index] {
            Some(format!("Named `{name}`, because `{}` is too long.", shown(&wanted[index])))
        } else {
            None
        };
        first.then(|| ToolName { name: name.clone(), why })
    };
    names.iter().enumerate().map(finish).collect()
}

fn groups(names: &[String]) -> HashMap<String, Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        groups.entry(name.clone()).or_default().push(index);
    }
    groups
}

/// Returns the simplest name of an operation, which may conflict with others.
fn wanted(operation: &Operation<'_>) -> String {
    match operation.id.map(snake) {
        Some(name) if !name.is_empty() => lettered(name, "call"),
        _ => from_path(operation),
    }
}

/// Returns a name from the method and path: `get_pets_toys_by_id` for `GET /pets/{id}/toys`.
fn from_path(operation: &Operation<'_>) -> String {
    let (mut fixed, mut variable) = (vec![operation.verb.to_lowercase()], Vec::new());
    for (index, piece) in operation.path.split(['{', '}']).enumerate() {
        let words = snake(piece);
        if !words.is_empty() {
            if index % 2 == 0 { fixed.push(words) } else { variable.push(words) }
        }
    }
    let mut name = fixed.join("_");
    if !variable.is_empty() {
        name = format!("{name}_by_{}", variable.join("_"));
    }
    name
}

fn at_level(operation: &Operation<'_>, wanted: &str, level: usize, room: usize) -> String {
    let digits = |count: usize| Digest::of([operation.verb.as_bytes(), operation.path.as_bytes()]).to_string()[..count].to_owned();
    let ending = match level {
        0 => return cut(wanted, room),
        1 => operation.verb.to_lowercase(),
        2 => return cut(&from_path(operation), room),
        3 => digits(6),
        _ => digits(16),
    };
    format!("{}_{ending}", cut(wanted, room - ending.len() - 1))
}

/// Shortens a name to at most `room` characters, between words if possible.
pub(super) fn cut(name: &str, room: usize) -> String {
    if name.len() <= room {
        return name.to_owned();
    }
    let head: String = name.chars().take(room).collect();
    let between = name[head.len()..].starts_with('_');
    let end = head.rfind('_').filter(|end| !between && *end > room / 2).unwrap_or(head.len());
    head[..end].trim_end_matches('_').to_owned()
}

/// Prepends a word to a name that does not start with a letter.
pub(super) fn lettered(name: String, word: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { format!("{word}_{name}") }
}

/// Converts a text to snake case: `getPetById` and `get-pet-by-id` become `get_pet_by_id`.
pub(super) fn snake(text: &str) -> String {
    // Limit the work: names are shorter, but the document may contain a text of any length.
    let letters: Vec<char> = text.chars().take(1_000).collect();
    let mut name = String::new();
    for (index, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            if !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
            continue;
        }
        let before = index.checked_sub(1).map_or(' ', |before| letters[before]);
        if letter.is_ascii_uppercase() && before.is_ascii_alphanumeric() {
            let after = |distance: usize| letters.get(index + distance).copied().unwrap_or(' ');
            // In `HTTPServer` the last capital letter starts a new word, but not in `listURLs`.
            let plural = after(1) == 's' && !after(2).is_ascii_lowercase();
            if !before.is_ascii_uppercase() || (after(1).is_ascii_lowercase() && !plural) {
                name.push('_');
            }
        }
        name.push(letter.to_ascii_lowercase());
    }
    name.truncate(name.trim_end_matches('_').len());
    name
}

#[cfg(test)]
mod tests;
