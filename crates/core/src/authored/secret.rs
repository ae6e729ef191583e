//! Secrets in tool files.

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// A string that is never printed.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(SecretString);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Secret {
    /// Returns the string itself. Use it only in requests.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the secret for the redactor.
    #[must_use]
    pub fn secret(&self) -> &SecretString {
        &self.0
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "description": "A secret. Take it from the environment with ${NAME}."})
    }
}
