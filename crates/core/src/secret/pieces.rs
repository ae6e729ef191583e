//! Text that comes in pieces: a secret may begin in one and end in another.

use super::{MASK, Redactor};
use secrecy::{ExposeSecret, SecretString};

/// Cuts secrets out of a text that comes in pieces. What may be the beginning of a secret waits for the next piece.
#[derive(Debug)]
pub struct RedactedPieces {
    redactor: Redactor,
    spellings: Vec<SecretString>,
    /// With which bytes a secret can begin.
    first: [bool; 256],
    held: String,
}

impl Redactor {
    /// For a text that comes in pieces. It knows the secrets of this moment; later ones are found only inside a piece.
    #[must_use]
    pub fn pieces(&self) -> RedactedPieces {
        let spellings: Vec<SecretString> = self.known().spellings().map(Into::into).collect();
        let mut first = [false; 256];
        for spelling in &spellings {
            if let Some(byte) = spelling.expose_secret().bytes().next() {
                first[usize::from(byte)] = true;
            }
        }
        RedactedPieces { redactor: self.clone(), spellings, first, held: String::new() }
    }

    /// The beginning of a secret that ends behind this place and begins before it.
    fn straddles(&self, text: &str, place: usize) -> Option<usize> {
        let known = self.known();
        let finder = known.finder.as_ref()?;
        finder.find_iter(text).find(|found| found.end() > place).map(|found| found.start()).filter(|start| *start < place)
    }
}

impl RedactedPieces {
    /// Takes a piece and gives what can be shown.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let open = self.open_end();
        // A whole secret may end in what looks like the beginning of another.
        let show = self.redactor.straddles(&self.held, open).unwrap_or(open);
        let rest = self.held.split_off(show);
        let shown = std::mem::replace(&mut self.held, rest);
        self.redactor.clean(&shown).unwrap_or(shown)
    }

    /// The text is over: gives what was held.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        // Half a secret is a secret: most of one is not shown only because the rest did not come.
        let halved = self.spellings.iter().any(|secret| {
            let secret = secret.expose_secret();
            rest.len() * 2 > secret.len() && secret.starts_with(&rest)
        });
        if halved && !rest.is_empty() { MASK.to_owned() } else { self.redactor.clean(&rest).unwrap_or(rest) }
    }

    /// Where an end begins that may be the beginning of a secret.
    fn open_end(&self) -> usize {
        let bytes = self.held.as_bytes();
        let longest = self.spellings.iter().map(|secret| secret.expose_secret().len()).max().unwrap_or(0);
        let begins = |at: &usize| {
            let tail = &bytes[*at..];
            let is_open =
                |secret: &SecretString| secret.expose_secret().len() > tail.len() && secret.expose_secret().as_bytes().starts_with(tail);
            self.first[usize::from(bytes[*at])] && self.spellings.iter().any(is_open)
        };
        (bytes.len().saturating_sub(longest)..bytes.len()).find(begins).unwrap_or(bytes.len())
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
