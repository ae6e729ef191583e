//! Pins: the tool definitions that a person approved. Helve does not use a changed definition until a person approves it again.

mod inspect;

use std::collections::BTreeMap;

use helve_core::Digest;
use helve_core::json::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use inspect::{Flag, inspect};
pub(crate) use inspect::{strip_words, without_hidden};

/// The approved instructions and tool definitions of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    /// The approved instructions of the server.
    #[serde(default)]
    pub instructions: Option<String>,
    /// The approved tools, by name on the server, each with its full definition.
    #[serde(default)]
    pub tools: BTreeMap<String, Value>,
}

/// A store of approved tool definitions.
pub trait PinStore: Send + Sync + 'static {
    /// Returns the approved definitions of a server, or `None` if none were ever approved.
    ///
    /// # Errors
    /// Returns why the definitions cannot be read. Helve then uses no tool of the server.
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String>;

    /// Returns a value that changes whenever the stored approvals change.
    fn stamp(&self) -> u64;
}

/// How a tool definition compares with the approved one.
#[derive(Debug, Clone, PartialEq)]
pub enum PinStatus {
    /// The definition is approved.
    Same,
    /// No definition of the tool was ever approved.
    New,
    /// The definition, or the server's instructions, differ from the approved ones.
    Changed {
        /// The approved definition.
        was: Value,
        /// Whether only the server's instructions differ.
        only_instructions: bool,
        /// The approved instructions, if they differ from the current ones.
        instructions: Option<Box<str>>,
    },
}

impl PinStatus {
    /// Returns whether the definition is approved, so that the tool may be used.
    #[must_use]
    pub fn is_same(&self) -> bool {
        *self == Self::Same
    }
}

/// Compares a tool's definition and the server's instructions with the approved ones.
pub(crate) fn compare(pins: Option<&Pins>, name: &str, definition: &Value, instructions: Option<&str>) -> PinStatus {
    let Some((pins, was)) = pins.and_then(|pins| Some((pins, pins.tools.get(name)?))) else { return PinStatus::New };
    let same = digest(was, pins.instructions.as_deref()) == digest(definition, instructions);
    if same {
        return PinStatus::Same;
    }
    let other_instructions = pins.instructions.as_deref() != instructions;
    let instructions = other_instructions.then(|| pins.instructions.as_deref().unwrap_or_default().into());
    PinStatus::Changed { was: was.clone(), only_instructions: canonical(was) == canonical(definition), instructions }
}

/// Returns the digest of a tool's definition and the server's instructions.
pub(crate) fn digest(definition: &Value, instructions: Option<&str>) -> Digest {
    let instructions = canonical(&Value::from(instructions));
    Digest::of([canonical(definition).as_bytes(), instructions.as_bytes()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_word_of_a_definition_counts() {
        let tool = json!({"name": "a", "description": "x", "inputSchema": {"type": "object"}});
        let pins = Pins { instructions: Some("be kind".into()), tools: [("a".to_owned(), tool.clone())].into() };
        let of = |definition: &Value, instructions| compare(Some(&pins), "a", definition, instructions);
        assert!(of(&tool, Some("be kind")).is_same());
        let reordered = json!({"inputSchema": {"type": "object"}, "description": "x", "name": "a"});
        assert!(of(&reordered, Some("be kind")).is_same(), "the order of fields says nothing");
        assert!(matches!(of(&tool, Some("be mean")), PinStatus::Changed { only_instructions: true, .. }));
        let mut both = tool.clone();
        both["description"] = json!("y");
        let changed = of(&both, Some("be mean"));
        assert!(matches!(&changed, PinStatus::Changed { only_instructions: false, instructions: Some(was), .. } if &**was == "be kind"));
        for field in ["title", "icons", "_meta", "annotations", "outputSchema", "description"] {
            let mut other = tool.clone();
            other[field] = json!({"y": 1});
            assert!(
                matches!(of(&other, Some("be kind")), PinStatus::Changed { only_instructions: false, instructions: None, .. }),
                "{field}"
            );
        }
        assert_eq!(compare(Some(&pins), "b", &tool, None), PinStatus::New);
        assert_eq!(compare(None, "a", &tool, None), PinStatus::New);
    }
}
