//! Where a tag ends.

use crate::format::Tags;
use crate::work::{self, seen};

/// A tag with its attributes is never longer than this.
pub(super) const MAX_TAG: usize = 2048;

/// The end of a tag, outside of quotes.
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
            // A quote that is still open where the next tag begins was never meant to hide the end of this one.
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

/// The last place not behind the limit where a character ends.
pub(super) fn floor(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
