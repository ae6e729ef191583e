//! Placeholders for secrets in the store. A process that has the secret restores it when it reads the placeholder.
//!
//! A placeholder contains the source of the secret, a few digits of a hash, and the encoding: `[REDACTED:env:OPENAI_API_KEY:3f2a1b:plain]`.
//! The digits detect that the source has another value now; they are too few to confirm a guess. Text that only looks like a placeholder is
//! escaped, so that an attacker cannot make Helve insert a secret.

use secrecy::ExposeSecret;
use serde_json::{Number, Value};

use super::known::{KnownSecrets, Secret, SecretMatch};
use super::spelling::SPELLINGS;
use super::{Redactor, Rewrite};
use crate::digest::Digest;

/// The start of a placeholder.
const BEGIN: &str = "[REDACTED:";
const END: char = ']';
/// The escape for text that looks like the start of a placeholder.
const LITERAL: &str = "[REDACTED:=]";
/// Prefix of a string that replaces a number with a secret in it, because a JSON number cannot contain a placeholder.
const NUMBER: &str = "[REDACTED:#]";
/// The name of any encoding that cannot be restored.
const OTHER: &str = "other";
/// The source name of a secret that was added without one.
const UNNAMED: &str = "unnamed";
const DIGITS: usize = 6;
/// Maximum number of placeholders with an unknown secret to remember.
const REMEMBERED: usize = 4096;

/// Replaces secrets with placeholders.
pub(crate) struct Seal<'a> {
    pub(crate) redactor: &'a Redactor,
    /// Whether secrets stay in plain text. Text that looks like a placeholder is always escaped.
    pub(crate) keeps_secrets: bool,
}

impl Rewrite for Seal<'_> {
    fn text(&self, text: &str) -> Option<String> {
        let known = self.redactor.known();
        let found = if self.keeps_secrets { Vec::new() } else { known.find(text) };
        if found.is_empty() && !text.contains(BEGIN) {
            return None;
        }
        let (mut sealed, mut done) = (String::with_capacity(text.len()), 0);
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        for SecretMatch { start, end, secret } in found {
            sealed.push_str(&part(done, start).replace(BEGIN, LITERAL));
            if let Some(secret) = known.secrets.get(secret) {
                sealed.push_str(&secret.placeholder(part(start, end)));
            }
            done = end;
        }
        sealed.push_str(&part(done, text.len()).replace(BEGIN, LITERAL));
        Some(sealed)
    }

    fn number(&self, number: &Number) -> Option<Value> {
        self.text(&number.to_string()).map(|sealed| format!("{NUMBER}{sealed}").into())
    }
}

/// Replaces placeholders with secrets. A placeholder whose secret is unknown does not change, and the redactor remembers it.
pub(crate) struct Unseal<'a>(pub(crate) &'a Redactor);

impl Rewrite for Unseal<'_> {
    fn text(&self, text: &str) -> Option<String> {
        let mut begin = text.find(BEGIN)?;
        let (known, mut unfilled) = (self.0.known(), Vec::new());
        let (mut unsealed, mut rest) = (String::with_capacity(text.len()), text);
        loop {
            let (before, there) = rest.split_at(begin);
            unsealed.push_str(before);
            let (taken, filled) = read(there, &known, &mut unfilled);
            unsealed.push_str(filled.as_deref().unwrap_or(taken));
            rest = there.get(taken.len()..).unwrap_or_default();
            match rest.find(BEGIN) {
                Some(next) => begin = next,
                None => break,
            }
        }
        unsealed.push_str(rest);
        drop(known);
        self.0.remember(unfilled);
        (unsealed != text).then_some(unsealed)
    }

    fn number(&self, _: &Number) -> Option<Value> {
        None
    }

    fn string(&self, text: &str) -> Option<Value> {
        let Some(number) = text.strip_prefix(NUMBER) else { return self.text(text).map(Value::String) };
        let number = self.text(number)?;
        // Another part of the number may be a secret that is not known.
        let read = serde_json::from_str::<Number>(&number).ok().map(Value::Number);
        Some(read.unwrap_or_else(|| format!("{NUMBER}{number}").into()))
    }
}

/// Reads a text that starts like a placeholder. Returns the part that was read and its replacement, if there is one.
fn read<'t>(text: &'t str, known: &KnownSecrets, unfilled: &mut Vec<String>) -> (&'t str, Option<String>) {
    if text.starts_with(LITERAL) {
        return (text.get(..LITERAL.len()).unwrap_or(text), Some(BEGIN.to_owned()));
    }
    let whole = text.find(END).and_then(|end| text.get(..=end));
    match whole.and_then(|whole| Some((whole, Placeholder::read(whole)?))) {
        None => (text.get(..BEGIN.len()).unwrap_or(text), None),
        Some((whole, placeholder)) => {
            let filled = known.fill(&placeholder);
            if filled.is_none() {
                unfilled.push(whole.to_owned());
            }
            (whole, filled)
        }
    }
}

/// The parts of a placeholder.
struct Placeholder<'t> {
    source: &'t str,
    check: &'t str,
    spelling: &'t str,
}

impl<'t> Placeholder<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let inside = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
        let mut parts = inside.rsplitn(3, ':');
        let (spelling, check, source) = (parts.next()?, parts.next()?, parts.next()?);
        let is_one = check.len() == DIGITS
            && check.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && !spelling.is_empty()
            && spelling.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !source.is_empty()
            && source.chars().all(is_plain);
        is_one.then_some(Self { source, check, spelling })
    }
}

/// Returns whether the name of a source may contain a character.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-./#:".contains(letter)
}

fn plain(source: &str) -> String {
    source.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

impl Secret {
    fn placeholder(&self, written: &str) -> String {
        let value = self.value.expose_secret();
        // Other processes have the same environment variables, but may lack other sources.
        let source = self.sources.iter().find(|source| source.starts_with("env:")).or(self.sources.first());
        let source = source.map_or_else(|| UNNAMED.to_owned(), |source| plain(source));
        let spelling = SPELLINGS.iter().find(|spelling| (spelling.write)(value) == written).map_or(OTHER, |spelling| spelling.name);
        format!("{BEGIN}{source}:{}:{spelling}{END}", check(&source, value))
    }
}

impl KnownSecrets {
    fn fill(&self, placeholder: &Placeholder<'_>) -> Option<String> {
        let Placeholder { source, check: wanted, spelling } = placeholder;
        let spelling = SPELLINGS.iter().find(|known| known.name == *spelling)?;
        let is_it = |secret: &&Secret| {
            let named = *source == UNNAMED || secret.sources.iter().any(|own| plain(own) == *source);
            named && check(source, secret.value.expose_secret()) == *wanted
        };
        self.secrets.iter().find(is_it).map(|secret| (spelling.write)(secret.value.expose_secret()))
    }
}

fn check(source: &str, value: &str) -> String {
    let digest = Digest::of([b"a secret of Helve".as_slice(), source.as_bytes(), value.as_bytes()]);
    digest.to_string().get(..DIGITS).unwrap_or_default().to_owned()
}

impl Redactor {
    fn remember(&self, unfilled: Vec<String>) {
        if !unfilled.is_empty() {
            let mut known = self.0.write();
            for placeholder in unfilled {
                if known.unfilled.len() < REMEMBERED {
                    known.unfilled.insert(placeholder);
                }
            }
        }
    }

    /// Returns the source of a secret that a value from the store needs and that this process does not have, such as `environment variable
    /// OPENAI_API_KEY`. Returns `None` if no secret is missing.
    #[must_use]
    pub fn missing_secret(&self, value: &Value) -> Option<String> {
        let known = self.0.read();
        let unfilled = known.unfilled.iter().find(|placeholder| contains(value, placeholder))?;
        let source = Placeholder::read(unfilled)?.source;
        Some(match source.strip_prefix("env:") {
            Some(variable) => format!("environment variable {variable}"),
            None => source.to_owned(),
        })
    }
}

fn contains(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => own.contains(text),
        Value::Array(items) => items.iter().any(|item| contains(item, text)),
        Value::Object(fields) => fields.iter().any(|(key, field)| key.contains(text) || contains(field, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
