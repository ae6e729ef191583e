//! Counts the bytes that parsing looks at, so that tests can bound its work. Other builds count nothing.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Counts bytes that were looked at or copied.
#[inline]
pub(crate) fn count(bytes: usize) {
    #[cfg(test)]
    BYTES.with(|counted| counted.set(counted.get() + bytes));
    #[cfg(not(test))]
    let _ = bytes;
}

/// Counts a search from the start of the text: the bytes before the match, or all of them.
#[inline]
pub(crate) fn seen(text: impl AsRef<[u8]>, found: Option<usize>) -> Option<usize> {
    count(found.map_or(text.as_ref().len(), |at| at + 1));
    found
}

/// Counts a search from the end of the text.
#[inline]
pub(crate) fn seen_back(text: impl AsRef<[u8]>, found: Option<usize>) -> Option<usize> {
    count(text.as_ref().len() - found.unwrap_or(0));
    found
}

/// The count since the last call.
#[cfg(test)]
pub(crate) fn taken() -> usize {
    BYTES.with(|counted| counted.replace(0))
}

#[cfg(test)]
mod tests;
