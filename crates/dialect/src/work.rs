//! Counts the bytes that the parser reads, so that tests can check that its work is linear. Does nothing outside of tests.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Counts bytes that were read or copied.
#[inline]
pub(crate) fn count(bytes: usize) {
    #[cfg(test)]
    BYTES.with(|counted| counted.set(counted.get() + bytes));
    #[cfg(not(test))]
    let _ = bytes;
}

/// Counts the bytes of a search from the start of the text: up to the match, or all. Returns `found`.
#[inline]
pub(crate) fn seen(text: impl AsRef<[u8]>, found: Option<usize>) -> Option<usize> {
    count(found.map_or(text.as_ref().len(), |at| at + 1));
    found
}

/// Counts the bytes of a search from the end of the text. Returns `found`.
#[inline]
pub(crate) fn seen_back(text: impl AsRef<[u8]>, found: Option<usize>) -> Option<usize> {
    count(text.as_ref().len() - found.unwrap_or(0));
    found
}

/// Returns the count and resets it.
#[cfg(test)]
pub(crate) fn taken() -> usize {
    BYTES.with(|counted| counted.replace(0))
}

#[cfg(test)]
mod tests;
