//! Keeps the end of a program's output, and redacts secrets from it.

use helve_core::Redactor;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum number of bytes of the kept end.
const TAIL: usize = 8 << 10;
const CHUNK: usize = 4 << 10;

/// Reads `pipe` until its end or an error, and keeps the end of the output in `tail`.
pub async fn read_tail(mut pipe: impl AsyncRead + Unpin, tail: &mut Tail) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        tail.push(&chunk[..count]);
    }
}

/// The redacted end of a text that arrives in chunks.
///
/// The redactor cannot recognise part of a secret, so secrets are redacted each time before the beginning of the text is dropped.
pub struct Tail {
    redactor: Redactor,
    text: String,
    /// The bytes of an incomplete UTF-8 character at the end.
    partial: Vec<u8>,
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail").finish_non_exhaustive()
    }
}

impl Tail {
    /// Creates an empty tail that uses a copy of `redactor`.
    #[must_use]
    pub fn new(redactor: &Redactor) -> Self {
        Self { redactor: redactor.clone(), text: String::new(), partial: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let arrived = std::mem::take(&mut self.partial);
        let mut chunks = arrived.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let is_partial = |error: std::str::Utf8Error| error.error_len().is_none();
            if chunks.peek().is_none() && std::str::from_utf8(chunk.invalid()).is_err_and(is_partial) {
                self.partial = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if self.text.len() > 2 * TAIL {
            self.clean();
            keep_end(&mut self.text, TAIL);
        }
    }

    /// Returns the end of the text, redacted.
    #[must_use]
    pub fn finish(mut self) -> String {
        if !self.partial.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.clean();
        keep_end(&mut self.text, TAIL);
        self.text
    }

    fn clean(&mut self) {
        if let Some(clean) = self.redactor.clean(&self.text) {
            self.text = clean;
        }
    }
}

/// Drops the beginning of a text, so that at most `length` bytes remain, in whole characters.
pub fn keep_end(text: &mut String, length: usize) {
    let cut = text.ceil_char_boundary(text.len().saturating_sub(length));
    text.drain(..cut);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "canary-ü-0123456789-0123456789";

    fn tail(text: &[u8], step: usize) -> String {
        let redactor = Redactor::default();
        redactor.add([CANARY.to_owned().into()]);
        let mut tail = Tail::new(&redactor);
        for piece in text.chunks(step) {
            tail.push(piece);
            assert!(tail.text.len() <= 2 * TAIL, "bounded");
        }
        tail.finish()
    }

    #[test]
    fn the_end_is_kept_whatever_the_pieces() {
        let text = "zwölf €uro 🙂 ".repeat(3000) + "the end";
        for step in [1, 2, 3, 7, 4096] {
            let kept = tail(text.as_bytes(), step);
            assert!(text.ends_with(&kept) && kept.len() > TAIL - 4 && kept.len() <= TAIL, "{step}");
        }
        assert_eq!(tail(b"a\xffb\xe2\x82", 1), "a\u{fffd}b\u{fffd}");
    }

    /// Wherever the cut falls, no part of a secret is left: neither its end at the beginning, nor anything between.
    #[test]
    fn no_half_secret_is_kept() {
        for padding in 0..2 * CANARY.len() {
            let text = "x".repeat(padding) + &CANARY.repeat(2 * TAIL / CANARY.len() * 2);
            for step in [1000, 4096] {
                let kept = tail(text.as_bytes(), step);
                let rest = kept.replace("[REDACTED]", "");
                assert!("x[REDACTED]".contains(rest.trim_start_matches('x')), "{padding} {step}: {rest}");
                assert!(!kept.contains("0123"), "{padding} {step}");
            }
        }
    }
}
