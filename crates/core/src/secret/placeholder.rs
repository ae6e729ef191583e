//! What stands in the store where a secret stood, so that whoever has the secret can put it back.
//!
//! A placeholder names where the secret came from, has a few digits of a hash, so that another value is noticed, and says how the
//! secret was written: `[REDACTED:env:OPENAI_API_KEY:3f2a1b:plain]`. The digits are few on purpose: they tell values apart, and do not
//! prove a guess. Text that only looks like one is escaped, so that nobody can have a secret put where they like.

use secrecy::ExposeSecret;
use serde_json::{Number, Value};

use super::known::{Found, Known, Secret};
use super::spelling::SPELLINGS;
use super::{Redactor, Rewrite};
use crate::digest::Digest;

/// How a placeholder begins.
const BEGIN: &str = "[REDACTED:";
const END: char = ']';
/// Behind the beginning: the text had the beginning of a placeholder.
const LITERAL: &str = "[REDACTED:=]";
/// Before a number of which a part was a secret: JSON has no place for a text in a number.
const NUMBER: &str = "[REDACTED:#]";
/// A spelling that cannot be put back.
const OTHER: &str = "other";
/// A source without a name.
const UNNAMED: &str = "unnamed";
const DIGITS: usize = 6;
/// So many placeholders that could not be filled in are remembered.
const REMEMBERED: usize = 4096;

/// Puts placeholders where secrets stand.
pub(crate) struct Seal<'a> {
    pub(crate) redactor: &'a Redactor,
    /// Whether secrets stay as they are. What looks like a placeholder is escaped in any case.
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
        for Found { start, end, secret } in found {
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

/// Puts secrets back where placeholders stand. Those whose secret is not known stay, and are remembered.
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
        // A part of it may be missing still.
        let read = serde_json::from_str::<Number>(&number).ok().map(Value::Number);
        Some(read.unwrap_or_else(|| format!("{NUMBER}{number}").into()))
    }
}

/// Reads what begins like a placeholder: how much of the text that is, and what it stands for.
fn read<'t>(text: &'t str, known: &Known, unfilled: &mut Vec<String>) -> (&'t str, Option<String>) {
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

/// A placeholder in its parts.
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

/// What the name of a source may have in a placeholder.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-./#:".contains(letter)
}

fn plain(source: &str) -> String {
    source.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

impl Secret {
    fn placeholder(&self, written: &str) -> String {
        let value = self.value.expose_secret();
        // A variable is there in other processes too; not everything that a process learns is.
        let source = self.sources.iter().find(|source| source.starts_with("env:")).or(self.sources.first());
        let source = source.map_or_else(|| UNNAMED.to_owned(), |source| plain(source));
        let spelling = SPELLINGS.iter().find(|spelling| (spelling.write)(value) == written).map_or(OTHER, |spelling| spelling.name);
        format!("{BEGIN}{source}:{}:{spelling}{END}", check(&source, value))
    }
}

impl Known {
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

    /// The source of a secret that should stand in a value and does not: a placeholder was read from the store, and its secret is not
    /// known here. Such as `environment variable OPENAI_API_KEY`.
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
