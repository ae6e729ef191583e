//! Name patterns with `*` and `?`.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pattern such as `files_*`: `*` matches any number of characters, `?` exactly one. All other characters match themselves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Creates a pattern. Every string is a valid pattern.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the pattern contains neither `*` nor `?`.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Returns whether the pattern matches the whole text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        // Greedy with one backtrack position: at most pattern × text steps, no recursion.
        let (pattern, text) = (self.0.as_bytes(), text.as_bytes());
        let (mut p, mut t) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p, t));
                    p += 1;
                }
                Some(b'?') => {
                    p += 1;
                    t += 1;
                    // One `?` is one character, which may have several bytes.
                    while t < text.len() && text[t] & 0xC0 == 0x80 {
                        t += 1;
                    }
                }
                Some(literal) if *literal == text[t] => {
                    p += 1;
                    t += 1;
                }
                _ => {
                    let Some((from, taken)) = star else { return false };
                    star = Some((from, taken + 1));
                    p = from + 1;
                    t = taken + 1;
                }
            }
        }
        pattern[p..].iter().all(|rest| *rest == b'*')
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text, fits) in [
            ("files_*", "files_read", true),
            ("files_*", "files_", true),
            ("files_*", "file_read", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*_read", "a_read_read", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("git *", "git status", true),
            ("git *", "gitstatus", false),
        ] {
            assert_eq!(Pattern::from(pattern).matches(text), fits, "{pattern} on {text}");
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = Pattern::new("a*".repeat(30) + "b");
        assert!(!pattern.matches(&"a".repeat(5_000)));
    }
}
