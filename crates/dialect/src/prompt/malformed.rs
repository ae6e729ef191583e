//! Writes the message to a model whose call could not be parsed.

use super::{Prompt, instructions, text};
use crate::event::Malformed;
use crate::fault::FaultKind;

/// Number of characters that are quoted from the start of a long call.
const HEAD: usize = 160;
/// Number of characters that are quoted from the end of a long call.
const TAIL: usize = 80;
/// Maximum length of the parser's message, in characters.
const MAX_ERROR: usize = 300;

pub(super) fn write(prompt: Prompt, malformed: &Malformed) -> String {
    let words = prompt.words();
    let kind = match malformed.kind {
        FaultKind::Incomplete => 0,
        FaultKind::Syntax => 1,
        FaultKind::NoName => 2,
        FaultKind::NotAnObject => 3,
        FaultKind::TooDeep => 4,
        FaultKind::DuplicateKey => 5,
        FaultKind::Code => 6,
        FaultKind::TooMany => 7,
        FaultKind::TooLarge => 8,
    };
    let mut lines = vec![words.not_run.to_owned(), format!("{}{}", words.problem, words.kinds[kind])];
    let error = text::line(&harmless(&malformed.error), MAX_ERROR);
    if !error.is_empty() {
        lines.push(format!("{}{error}", words.details));
    }
    lines.push(format!("{}{}", words.you_wrote, excerpt(&malformed.raw)));
    lines.extend([words.right_form.to_owned(), instructions::form(prompt.form)]);
    lines.join("\n")
}

/// Returns the start and the end of a text in quotes, escaped so that no dialect parses it as a call.
fn excerpt(raw: &str) -> String {
    let raw = raw.trim();
    let count = raw.chars().count();
    if count <= HEAD + TAIL {
        return quoted(raw);
    }
    let at = |place: usize| raw.char_indices().nth(place).map_or(raw.len(), |(at, _)| at);
    format!("{} … {}", quoted(&raw[..at(HEAD)]), quoted(&raw[at(count - TAIL)..]))
}

fn quoted(raw: &str) -> String {
    harmless(&super::write::json(&raw.into()))
}

/// Escapes the first character of every call marker. The model still recognises its text, but the parser does not.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(character) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        match character {
            '<' => out.push_str("\\u003c"),
            '`' => out.push_str("\\u0060"),
            '[' if next.is_alphanumeric() || before.is_alphanumeric() => out.push_str("\\u005b"),
            '{' if next == '"' => out.push_str("\\u007b"),
            other => out.push(other),
        }
        before = character;
    }
    out
}
