//! Pins: tool definitions that a person approved. A definition that changes is not used until it is approved again.

mod inspect;

use std::collections::BTreeMap;

use helve_core::Digest;
use helve_core::json::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use inspect::{Flag, inspect};
pub(crate) use inspect::{strip_words, without_hidden};

/// The approved definitions of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    /// Its instructions.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Its tools by name, each with its full definition.
    #[serde(default)]
    pub tools: BTreeMap<String, Value>,
}

/// Stores approvals.
pub trait PinStore: Send + Sync + 'static {
    /// The approved definitions of a server; `None` if it was never approved.
    ///
    /// # Errors
    /// If they cannot be read. Then no tool is used.
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String>;

    /// A value that changes with any approval.
    fn stamp(&self) -> u64;
}

/// How a definition compares with the approved one.
#[derive(Debug, Clone, PartialEq)]
pub enum PinStatus {
    /// It is approved.
    Same,
    /// It was never approved.
    New,
    /// It differs from the approved one.
    Changed {
        /// The approved definition.
        was: Value,
        /// Whether only the server's instructions differ.
        only_instructions: bool,
        /// The approved instructions, if they differ.
        instructions: Option<Box<str>>,
    },
}

impl PinStatus {
    /// Returns whether the tool may be used.
    #[must_use]
    pub fn is_same(&self) -> bool {
        *self == Self::Same
    }
}

/// Compares a definition with the approved one.
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

/// The digest of a tool's definition and the server's instructions.
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
