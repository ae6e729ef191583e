//! Finds the positions in a text where a call could start, whatever precedes them.

use crate::dialect::{Compiled, Dialect, Meaning};
use crate::tools::ToolTable;

/// Maximum number of calls to parse after one marker. Later calls mostly have their own markers.
const MAX_CALLS: usize = 8;

/// Returns every position where a call could start, with the maximum number of calls to parse from there.
pub(super) fn of_calls(text: &str, dialect: &Dialect, tools: &ToolTable) -> impl Iterator<Item = (usize, usize)> + use<> {
    let mut single: Vec<usize> = brackets(text).chain(names(text, tools)).collect();
    single.sort_unstable();
    single.dedup();
    let mut marked: Vec<usize> = marks(text, dialect.compiled()).collect();
    marked.dedup();
    marked.into_iter().map(|place| (place, MAX_CALLS)).chain(single.into_iter().map(|place| (place, 1)))
}

/// Returns the positions of markers that start calls.
fn marks<'a>(text: &'a str, compiled: &'a Compiled) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    let mut at = 0;
    let anchors = std::iter::from_fn(move || {
        at += compiled.anchors.find(bytes.get(at..)?)? + 1;
        Some(at - 1)
    });
    anchors.flat_map(move |at| {
        let marked = compiled.anchored[usize::from(bytes[at])].with(bytes.get(at + 1).copied());
        let markers = marked.iter().map(|place| &compiled.markers[usize::from(*place)]);
        let opens = markers.filter(|marker| matches!(marker.meaning, Meaning::Calls(_)));
        opens.filter_map(move |marker| {
            let from = at.checked_sub(marker.anchor)?;
            bytes[from..].starts_with(marker.text.as_bytes()).then_some(from)
        })
    })
}

/// Returns the positions of objects with a key, and of lists of objects or Python calls.
fn brackets(text: &str) -> impl Iterator<Item = usize> + '_ {
    memchr::memchr2_iter(b'{', b'[', text.as_bytes()).filter(|at| {
        let object = text.as_bytes()[*at] == b'{';
        let first = text[at + 1..].trim_start().chars().next();
        first.is_some_and(|c| if object { matches!(c, '"' | '\'') || c.is_alphabetic() } else { c == '{' || c == '_' || c.is_alphabetic() })
    })
}

/// Returns the positions of tool names as whole words, and of `to=` before a tool name.
fn names<'a>(text: &'a str, tools: &'a ToolTable) -> impl Iterator<Item = usize> + 'a {
    let is_between = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
    let mut next = 0;
    let words = text.split_inclusive(is_between).filter_map(move |word| {
        let place = next;
        next += word.len();
        tools.lists(word.trim_end_matches(is_between)).then_some(place)
    });
    words.flat_map(move |place| {
        let before = &text[..place];
        let channel = before.strip_suffix("functions.").unwrap_or(before).strip_suffix("to=").map(str::len);
        channel.into_iter().chain([place])
    })
}
