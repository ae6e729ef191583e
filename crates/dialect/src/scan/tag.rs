//! Finds the end of a tag.

use crate::format::Tags;
use crate::work::{self, seen};

/// Maximum length of a tag with its attributes, in bytes.
pub(super) const MAX_TAG: usize = 2048;

/// Returns the index of the `>`, or of the format's own token, that ends the tag; ignores a `>` in quotes.
pub(super) fn tag_end(text: &str, from: usize, tags: &Tags) -> Option<usize> {
    let limit = floor(text, MAX_TAG);
    let window = text.get(from..limit)?;
    if tags.end != ">" {
        return seen(window, window.find(tags.end)).map(|at| from + at);
    }
    let (mut quote, mut hidden) = (None, None);
    for (at, byte) in window.bytes().enumerate() {
        work::count(1);
        match (quote, byte) {
            (None, b'>') => return Some(from + at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => (quote, hidden) = (None, None),
            (Some(_), b'>') => hidden = hidden.or(Some(from + at)),
            // A quote that is still open at the next tag or line was not meant to hide the end of this tag.
            (Some(_), b'<' | b'\n') => {
                if hidden.is_some() {
                    return hidden;
                }
                quote = None;
            }
            _ => {}
        }
    }
    if limit < text.len() { hidden } else { None }
}

/// Returns the largest character boundary that is not greater than `limit`.
pub(super) fn floor(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
