//! The rules of a tool, as fields of a file.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::permission::Permission;
use crate::rules::{CacheRule, Mode, Rules};

/// The rules of a tool, as fields of a file. Flatten this struct into the type of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RulesFields {
    /// Whether calls need approval: `auto`, `confirm` or `deny`.
    pub permission: Option<Permission>,
    /// Whether the caller waits for the result: `inline` or `background`.
    pub mode: Mode,
    /// Priority in the background queue, from -10 to 10: higher runs first. By default 0.
    #[schemars(range(min = -10, max = 10))]
    pub priority: i8,
    /// Minimum delay before a background call starts, such as `10m`.
    pub delay: Option<HumanDuration>,
    /// Timeout of one attempt, such as `30s`.
    pub timeout: Option<HumanDuration>,
    /// Maximum number of retries after a transient error. Only idempotent tools are retried.
    pub retries: u32,
    /// How long results are cached, such as `5m`.
    pub cache: Option<CacheField>,
    /// Whether repeating a call has the same effect as running it once.
    pub idempotent: bool,
    /// Whether a call must run alone, without other calls of the same turn.
    pub exclusive: bool,
    /// Maximum number of concurrent calls to the tool.
    pub concurrency: Option<NonZeroU32>,
}

impl RulesFields {
    /// Returns the rules. `default_permission` applies if the file sets no permission.
    #[must_use]
    pub fn rules(&self, default_permission: Permission) -> Rules {
        Rules {
            permission: self.permission.unwrap_or(default_permission),
            mode: self.mode,
            priority: self.priority,
            delay: self.delay.map(|delay| delay.0).unwrap_or_default(),
            timeout: self.timeout.map(|timeout| timeout.0),
            retries: self.retries,
            cache: self.cache.map(CacheField::rule),
            idempotent: self.idempotent,
            exclusive: self.exclusive,
            concurrency: self.concurrency,
            ends_run: false,
        }
    }
}

/// How long results are cached, and whether callers share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CacheField {
    /// A duration. Callers share the results.
    For(HumanDuration),
    /// A duration, with the option to separate callers.
    With {
        /// How long a result is valid.
        ttl: HumanDuration,
        /// Whether each caller gets its own cached results.
        #[serde(default)]
        per_caller: bool,
    },
}

impl CacheField {
    fn rule(self) -> CacheRule {
        match self {
            Self::For(ttl) => CacheRule { ttl: ttl.0, per_caller: false },
            Self::With { ttl, per_caller } => CacheRule { ttl: ttl.0, per_caller },
        }
    }
}

/// A duration: `30s`, `5m`, `1h 30m`, or a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(pub Duration);

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Seconds(f64),
            Text(String),
        }
        let wrong =
            |text: &dyn std::fmt::Display| serde::de::Error::custom(format!("`{text}` is not a duration such as `30s`, `5m` or `1h`"));
        match Written::deserialize(deserializer)? {
            Written::Seconds(seconds) => Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| wrong(&seconds)),
            Written::Text(text) => humantime::parse_duration(&text).map(Self).map_err(|_| wrong(&text)),
        }
    }
}

impl JsonSchema for HumanDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // With this pattern, schema validation reports a wrong duration with its position in the file.
        json_schema!({"type": ["string", "number"], "minimum": 0, "pattern": "^\\s*(\\d+\\s*[a-zA-Z]+\\s*)+$", "examples": ["30s", "5m", "1h"]})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<Rules, String> {
        serde_json::from_value::<RulesFields>(value).map(|fields| fields.rules(Permission::Auto)).map_err(|error| error.to_string())
    }

    #[test]
    fn words_become_rules() {
        assert_eq!(read(json!({})), Ok(Rules::default()));
        let rules = read(
            json!({"permission": "deny", "mode": "background", "priority": -2, "delay": "10m", "timeout": "1m 30s", "retries": 2, "cache": "5m",
            "idempotent": true, "exclusive": true, "concurrency": 3}),
        );
        let expected = Rules {
            permission: Permission::Deny,
            mode: Mode::Background,
            priority: -2,
            delay: Duration::from_mins(10),
            timeout: Some(Duration::from_secs(90)),
            retries: 2,
            cache: Some(CacheRule { ttl: Duration::from_mins(5), per_caller: false }),
            idempotent: true,
            exclusive: true,
            concurrency: NonZeroU32::new(3),
            ends_run: false,
        };
        assert_eq!(rules, Ok(expected));
        let cached = read(json!({"cache": {"ttl": 1.5, "per_caller": true}})).expect("rules").cache;
        assert_eq!(cached, Some(CacheRule { ttl: Duration::from_millis(1500), per_caller: true }));
    }

    #[test]
    fn wrong_words_are_named() {
        assert_eq!(read(json!({"timeout": "soon"})), Err("`soon` is not a duration such as `30s`, `5m` or `1h`".into()));
        assert!(read(json!({"timeout": -1})).is_err());
        assert!(read(json!({"permission": "ask"})).is_err_and(|error| error.contains("confirm")));
    }
}
