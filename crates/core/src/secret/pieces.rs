//! Redacts streamed text, in which a secret may start in one chunk and end in another.

use super::{MASK, Redactor};
use secrecy::{ExposeSecret, SecretString};

/// Removes secrets from text that arrives in chunks. It holds back text that may be the start of a secret until the next chunk.
#[derive(Debug)]
pub struct RedactedPieces {
    redactor: Redactor,
    sought: Vec<SecretString>,
    longest: usize,
    /// For each byte, whether a secret can start with it.
    first: [bool; 256],
    held: String,
}

impl Redactor {
    /// Returns a redactor for streamed text. Secrets that are added later are found only within one chunk.
    #[must_use]
    pub fn pieces(&self) -> RedactedPieces {
        let sought: Vec<SecretString> = self.known().sought().map(|(text, _)| text.into()).collect();
        let longest = sought.iter().map(|text| text.expose_secret().len()).max().unwrap_or(0);
        let mut first = [false; 256];
        for text in &sought {
            if let Some(byte) = text.expose_secret().bytes().next() {
                first[usize::from(byte)] = true;
            }
        }
        RedactedPieces { redactor: self.clone(), sought, longest, first, held: String::new() }
    }
}

impl RedactedPieces {
    /// Adds a chunk, and replaces `text` with the text that can be shown now.
    pub fn push_into(&mut self, text: &mut String) {
        if self.sought.is_empty() && self.held.is_empty() {
            if let Some(clean) = self.redactor.clean(text) {
                *text = clean;
            }
        } else {
            *text = self.push(text);
        }
    }

    /// Adds a chunk. Returns the text that can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        if self.sought.is_empty() && self.held.is_empty() {
            return self.redactor.clean(text).unwrap_or_else(|| text.to_owned());
        }
        self.held.push_str(text);
        let open = self.open_end();
        // The end of a complete secret may look like the start of another one.
        let straddles = self.redactor.known().find(&self.held).into_iter().find(|found| found.end > open);
        let show = straddles.map_or(open, |found| found.start.min(open));
        let rest = self.held.split_off(show);
        let shown = std::mem::replace(&mut self.held, rest);
        self.redactor.clean(&shown).unwrap_or(shown)
    }

    /// Ends the text. Returns the redacted text that was held back.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        // More than half of a secret is masked, even though the rest did not arrive.
        let is_most = |bytes: &[u8]| {
            let most = |text: &SecretString| {
                let text = text.expose_secret().as_bytes();
                bytes.len() * 2 > text.len() && text.starts_with(bytes)
            };
            self.sought.iter().any(most)
        };
        let halved = !rest.is_empty() && self.redactor.known().views(&rest).each().any(|(bytes, ..)| is_most(bytes));
        if halved { MASK.to_owned() } else { self.redactor.clean(&rest).unwrap_or(rest) }
    }

    /// Returns the offset from which the text may be the start of a secret, in any of its decodings.
    fn open_end(&self) -> usize {
        let known = self.redactor.known();
        let views = known.views(&self.held);
        let open = views.each().filter_map(|(bytes, is_open, view)| {
            let begin = self.open_end_of(bytes);
            // An incomplete escape may be the first character of a secret.
            let waits = begin < bytes.len() || is_open;
            waits.then(|| views.place(view, begin, begin).0)
        });
        let open = open.min().unwrap_or(self.held.len());
        self.held.floor_char_boundary(open)
    }

    fn open_end_of(&self, bytes: &[u8]) -> usize {
        let begins = |at: &usize| {
            let tail = bytes.get(*at..).unwrap_or_default();
            let is_open =
                |text: &SecretString| text.expose_secret().len() > tail.len() && text.expose_secret().as_bytes().starts_with(tail);
            tail.first().is_some_and(|byte| self.first[usize::from(*byte)]) && self.sought.iter().any(is_open)
        };
        (bytes.len().saturating_sub(self.longest)..bytes.len()).find(begins).unwrap_or(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(secrets: &[&str], text: &str, size: usize) -> String {
        let redactor = Redactor::default();
        redactor.add(secrets.iter().map(|secret| (*secret).to_owned().into()));
        let mut pieces = redactor.pieces();
        let characters: Vec<char> = text.chars().collect();
        let mut shown: String = characters.chunks(size).map(|chunk| pieces.push(&chunk.iter().collect::<String>())).collect();
        shown.push_str(&pieces.finish());
        shown
    }

    #[test]
    fn a_secret_in_pieces_is_cut_out_as_if_it_were_whole() {
        for size in [1, 2, 3, 7, 100] {
            for (secrets, text, wanted) in [
                (&["canary-9000"][..], "a canary-9000 b canary-8", "a [REDACTED] b canary-8"),
                (&["abcabcabc", "abcabcabcdef"], "xabcabcabcabcabcdefy abcabcabc", "x[REDACTED]abcabcdefy [REDACTED]"),
                (&["schlüssel→1"], "der schlüssel→1 und schl", "der [REDACTED] und schl"),
                (&["canary\"9000"], r#"{"x":"canary\"9000"}"#, r#"{"x":"[REDACTED]"}"#),
                (&["canary/9000"], "u=canary%2f9000&x=canary%2F900", "u=[REDACTED]&x=[REDACTED]"),
                (&["canary/9000"], r#"{"x":"{\"y\":\"can\\u0061ry\\/9000\"}"}"#, r#"{"x":"{\"y\":\"[REDACTED]\"}"}"#),
                (&["canary/9000"], "it's 50% of \\ & more &c", "it's 50% of \\ & more &c"),
                (&["hunter22?>~~"], "Basic dTpodW50ZXIyMj8+fn4= or not", "Basic dTp[REDACTED]4= or not"),
                (&[], "canary-9000", "canary-9000"),
            ] {
                assert_eq!(in_pieces(secrets, text, size), wanted, "in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_cannot_be_a_secret_is_shown_at_once() {
        let redactor = Redactor::default();
        redactor.add(["canary-9000".to_owned().into()]);
        let mut pieces = redactor.pieces();
        assert_eq!(pieces.push("Hello, "), "Hello, ");
        assert_eq!(pieces.push("I can"), "I ");
        assert_eq!(pieces.push(" do it"), "can do it");
        assert_eq!(pieces.push("canary-90"), "");
        assert_eq!(pieces.finish(), MASK, "most of a secret is a secret");
        assert_eq!(pieces.push("ca"), "");
        assert_eq!(pieces.finish(), "ca", "and two letters are none");
    }
}
