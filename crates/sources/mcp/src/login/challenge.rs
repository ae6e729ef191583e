//! Parses the header `WWW-Authenticate`, which says what token a server requires.

use super::scopes::Scopes;

/// Maximum number of bytes to parse of a header; the rest is ignored.
const LONGEST: usize = 8 << 10;

/// The parameters of a server's `Bearer` challenges.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The URL of the server's metadata.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the token must have.
    pub(super) scopes: Scopes,
    /// The error code, which says what is wrong with the token in the request.
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Parses a header, with several values joined by commas. Ignores everything after a syntax error.
    pub(super) fn read(header: Option<&str>) -> Self {
        let header = header.unwrap_or_default();
        let mut reader = Reader(&header[..header.floor_char_boundary(LONGEST)]);
        let mut challenge = Self::default();
        let mut bearer = false;
        while let Some(word) = reader.word() {
            if !reader.eat('=') {
                bearer = word.eq_ignore_ascii_case("bearer");
                continue;
            }
            let Some(value) = reader.value() else { break };
            if !bearer {
                continue;
            }
            match word.to_ascii_lowercase().as_str() {
                "resource_metadata" => _ = challenge.resource_metadata.get_or_insert(value),
                "scope" if challenge.scopes.is_empty() => challenge.scopes = Scopes::read(&value),
                "error" => _ = challenge.error.get_or_insert(value),
                _ => {}
            }
        }
        challenge
    }

    /// Returns whether the token in the request is valid but lacks a scope.
    pub(super) fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    /// Returns the next word, after any blanks and commas.
    fn word(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        Some(self.here()).filter(|word| !word.is_empty())
    }

    /// Returns the word at the current position; empty if there is none.
    fn here(&mut self) -> &'a str {
        let (word, rest) = self.0.split_at(self.0.find(|character| !is_word(character)).unwrap_or(self.0.len()));
        self.0 = rest;
        word
    }

    fn eat(&mut self, wanted: char) -> bool {
        let rest = self.0.trim_start_matches([' ', '\t']).strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn value(&mut self) -> Option<String> {
        if !self.eat('"') {
            // Skips the padding of credentials such as `Basic abc==`.
            self.0 = self.0.trim_start_matches(['=', ' ', '\t']);
            return Some(self.here().to_owned());
        }
        let mut text = String::new();
        let mut characters = self.0.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(text);
                }
                '\\' => text.push(characters.next()?.1),
                _ => text.push(character),
            }
        }
        None
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_graphic() && !matches!(character, '"' | ',' | '=' | '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> [String; 3] {
        let challenge = Challenge::read(Some(header));
        [challenge.resource_metadata.unwrap_or_default(), challenge.scopes.to_string(), challenge.error.unwrap_or_default()]
    }

    #[test]
    fn a_challenge_is_read_in_every_spelling() {
        let full = r#"Bearer error="insufficient_scope", scope="a b", resource_metadata="https://x/y", error_description="no, \"really\"""#;
        assert_eq!(read(full), ["https://x/y", "a b", "insufficient_scope"]);
        assert_eq!(read(r#"bEaReR  Scope = "a",RESOURCE_METADATA=https://x/y"#), ["https://x/y", "a", ""]);
        let several = r#"Basic realm="x, Bearer scope=\"no\"", Negotiate abc==, Bearer scope="yes", Digest error="no""#;
        assert_eq!(read(several), ["", "yes", ""]);
        assert_eq!(read("Bearer"), ["", "", ""]);
        assert_eq!(Challenge::read(None), Challenge::default());
    }

    #[test]
    fn garbage_ends_the_reading() {
        assert_eq!(read(r#"Bearer scope="a", error="never closed"#), ["", "a", ""]);
        for header in ["", ",,,", "=", "\"", "Bearer =", "Bearer scope=", "Bearer scope=\"\\", "\u{0}\u{1}", "Bearer \u{4e2d}=\"x\""] {
            assert_eq!(read(header), ["", "", ""], "{header:?}");
        }
        let long = format!("Bearer realm=\"{}\", scope=\"late\"", "中".repeat(LONGEST));
        assert_eq!(read(&long), ["", "", ""]);
    }
}
