//! Definitions that a person has seen and agreed to. What a server changes afterwards is not used until someone agrees again.

use std::collections::BTreeMap;

use helve_core::Digest;
use helve_core::json::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What was agreed to about one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    /// Its instructions.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Its tools, by name, with all that the server said about them.
    #[serde(default)]
    pub tools: BTreeMap<String, Value>,
}

/// Where agreements are kept.
pub trait PinStore: Send + Sync + 'static {
    /// What was agreed to about a server; nothing where nobody was asked.
    ///
    /// # Errors
    /// Where that cannot be read. Nothing is used then.
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String>;

    /// Something that differs when any agreement has changed.
    fn stamp(&self) -> u64;
}

/// How a definition compares with what was agreed to.
#[derive(Debug, Clone, PartialEq)]
pub enum Pinned {
    /// It is the same.
    Same,
    /// Nobody was asked about it.
    New,
    /// It was another.
    Changed {
        /// What it was.
        was: Value,
        /// Whether it is only the instructions of the server that are different.
        only_instructions: bool,
        /// What the instructions were, where they are different.
        instructions: Option<Box<str>>,
    },
}

impl Pinned {
    /// Whether the tool may be used.
    #[must_use]
    pub fn is_same(&self) -> bool {
        *self == Self::Same
    }
}

/// Compares a definition with what was agreed to.
pub(crate) fn compare(pins: Option<&Pins>, name: &str, definition: &Value, instructions: Option<&str>) -> Pinned {
    let Some((pins, was)) = pins.and_then(|pins| Some((pins, pins.tools.get(name)?))) else { return Pinned::New };
    let same = digest(was, pins.instructions.as_deref()) == digest(definition, instructions);
    if same {
        return Pinned::Same;
    }
    let other_instructions = pins.instructions.as_deref() != instructions;
    let instructions = other_instructions.then(|| pins.instructions.as_deref().unwrap_or_default().into());
    Pinned::Changed { was: was.clone(), only_instructions: canonical(was) == canonical(definition), instructions }
}

/// The identity of a definition: all that the server says about the tool, and about itself.
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
        assert!(matches!(of(&tool, Some("be mean")), Pinned::Changed { only_instructions: true, .. }));
        let mut both = tool.clone();
        both["description"] = json!("y");
        let changed = of(&both, Some("be mean"));
        assert!(matches!(&changed, Pinned::Changed { only_instructions: false, instructions: Some(was), .. } if &**was == "be kind"));
        for field in ["title", "icons", "_meta", "annotations", "outputSchema", "description"] {
            let mut other = tool.clone();
            other[field] = json!({"y": 1});
            assert!(matches!(of(&other, Some("be kind")), Pinned::Changed { only_instructions: false, instructions: None, .. }), "{field}");
        }
        assert_eq!(compare(Some(&pins), "b", &tool, None), Pinned::New);
        assert_eq!(compare(None, "a", &tool, None), Pinned::New);
    }
}
