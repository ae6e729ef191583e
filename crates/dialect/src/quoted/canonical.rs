//! Compares calls by digest: calls with the same tool and arguments are equal, whatever their spelling.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Number, Value};

use crate::event::Call;

/// Returns a digest that is the same for equivalent calls. A collision is harmless: it only makes another call count as quoted.
pub(super) fn digest(call: &Call) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.name.hash(&mut hasher);
    hash_members(&call.arguments, &mut hasher);
    hasher.finish()
}

fn hash_members(members: &Map<String, Value>, hasher: &mut DefaultHasher) {
    // A null argument is equivalent to an omitted one.
    let mut members: Vec<(&String, &Value)> = members.iter().filter(|(_, value)| !value.is_null()).collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    b'{'.hash(hasher);
    for (name, value) in members {
        hash_text(name, hasher);
        hash_value(value, hasher);
    }
    b'}'.hash(hasher);
}

fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => hash_text("null", hasher),
        Value::Bool(value) => hash_text(if *value { "true" } else { "false" }, hasher),
        Value::Number(number) => hash_text(&plain(number), hasher),
        // Formats without types write numbers as text.
        Value::String(text) => match serde_json::from_str::<Number>(text.trim()) {
            Ok(number) => hash_text(&plain(&number), hasher),
            Err(_) => hash_text(text, hasher),
        },
        Value::Array(items) => {
            b'['.hash(hasher);
            for item in items {
                hash_value(item, hasher);
            }
            b']'.hash(hasher);
        }
        Value::Object(members) => hash_members(members, hasher),
    }
}

/// Returns a number in canonical form: 1, 1.0 and 1e0 are equal.
fn plain(number: &Number) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && float.abs() < EXACT => format!("{}", float + 0.0),
        Some(float) if number.is_f64() => format!("{float:e}"),
        _ => number.to_string(),
    }
}

/// Hashes a text without white space and invisible characters, which models change when they repeat a text.
fn hash_text(text: &str, hasher: &mut DefaultHasher) {
    b'"'.hash(hasher);
    for word in text.split(|c: char| c.is_whitespace() || is_invisible(c)).filter(|word| !word.is_empty()) {
        word.bytes().for_each(|byte| byte.hash(hasher));
    }
    b'"'.hash(hasher);
}

/// Returns whether a character is a control character, or a Unicode character that only affects how others are displayed.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{feff}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest_of(arguments: &Value) -> u64 {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let (id, name) = ("c".to_owned(), "f".to_owned());
        digest(&Call { index: 0, id, name, arguments, repairs: crate::repair::Repairs::default(), written: None })
    }

    #[test]
    fn spelling_makes_no_difference() {
        for (one, two) in [
            (json!({"a": 1, "b": "x"}), json!({"b": "x", "a": 1.0})),
            (json!({"a": 0}), json!({"a": -0.0})),
            (json!({"a": 1}), json!({"a": "1"})),
            (json!({"a": 100}), json!({"a": "1e2"})),
            (json!({"a": true}), json!({"a": "true"})),
            (json!({"a": {"b": null}}), json!({"a": {}})),
            (json!({"a": " one\n  two"}), json!({"a": "one two "})),
            (json!({"a": "o\u{200b}ne"}), json!({"a": "one"})),
        ] {
            assert_eq!(digest_of(&one), digest_of(&two), "{one} {two}");
        }
    }

    #[test]
    fn other_calls_are_other_calls() {
        let calls = [
            json!({}),
            json!({"a": 1}),
            json!({"a": -1}),
            json!({"a": 1.5}),
            json!({"a": "x"}),
            json!({"b": "x"}),
            json!({"a": "x", "b": "x"}),
            json!({"a": ["x"]}),
            json!({"a": ["x", "y"]}),
            json!({"a": [["x"], "y"]}),
            json!({"a": {"x": "y"}}),
            json!({"a": u64::MAX}),
            json!({"a": u64::MAX - 1}),
            json!({"a": 9_007_199_254_740_993_u64}),
        ];
        for (place, one) in calls.iter().enumerate() {
            for two in &calls[place + 1..] {
                assert_ne!(digest_of(one), digest_of(two), "{one} {two}");
            }
        }
    }
}
