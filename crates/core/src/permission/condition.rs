//! Matches a rule's pattern against an argument by its value, not by how the caller spelled it.

use serde_json::{Number, Value};

use crate::json::{self, JsonLimits};
use crate::pattern::Pattern;

/// The result of checking a condition. Ordered, so that the minimum of several conditions is the result for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// The result depends on how the caller wrote the value, which is not known any more, or on how the tool interprets it.
    Unclear,
    Yes,
}

impl From<bool> for Match {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// Checks whether a value matches a pattern. A string is matched as text, all other values as canonical JSON. A pattern that is JSON
/// without `*` and `?` is compared with the value itself.
pub(super) fn meets(pattern: &Pattern, value: &Value) -> Match {
    let written = pattern.is_literal().then(|| pattern.as_str());
    match value {
        Value::String(text) if pattern.matches(text) => Match::Yes,
        // The tool may read "1.0" as a number, which equals the 1 of a rule.
        Value::String(text) => match (written.and_then(number), number(text)) {
            (Some(_), Some(given)) => written.map_or(Match::No, |written| equals(written, &given)).min(Match::Unclear),
            _ => Match::No,
        },
        Value::Number(given) => written.map_or(Match::No, |written| equals(written, given)).max(spelled(pattern, value)),
        Value::Array(_) | Value::Object(_) => {
            let wanted = written.and_then(|written| json::parse(written.as_bytes(), JsonLimits::ARGUMENTS).ok());
            wanted.map_or(Match::No, |wanted| compare(&wanted, value)).max(spelled(pattern, value))
        }
        Value::Null | Value::Bool(_) => pattern.matches(&value.to_string()).into(),
    }
}

/// Checks whether the JSON text of a value matches a pattern. A match in another than the canonical form is unclear.
fn spelled(pattern: &Pattern, value: &Value) -> Match {
    if pattern.matches(&json::canonical(value)) {
        return Match::Yes;
    }
    // 100000000000000000000 and 1e20 are the same number, and the order of keys has no meaning.
    let digits = value.as_f64().filter(|_| !value.is_i64() && !value.is_u64()).map(|float| float.to_string());
    if pattern.matches(&value.to_string()) || digits.is_some_and(|digits| pattern.matches(&digits)) { Match::Unclear } else { Match::No }
}

/// Checks whether two values are equal.
fn compare(wanted: &Value, given: &Value) -> Match {
    match (wanted, given) {
        (Value::Number(wanted), Value::Number(given)) => equals(&wanted.to_string(), given),
        (Value::Array(wanted), Value::Array(given)) if wanted.len() == given.len() => {
            wanted.iter().zip(given).map(|(wanted, given)| compare(wanted, given)).min().unwrap_or(Match::Yes)
        }
        (Value::Object(wanted), Value::Object(given)) if wanted.len() == given.len() => {
            let same = |(key, wanted): (&String, &Value)| given.get(key).map_or(Match::No, |given| compare(wanted, given));
            wanted.iter().map(same).min().unwrap_or(Match::Yes)
        }
        _ => (wanted == given).into(),
    }
}

/// Checks whether a number in a rule equals a number in the arguments.
fn equals(written: &str, given: &Number) -> Match {
    let Some(wanted) = number(written) else { return Match::No };
    let (exactly, given_exactly) = (written.parse().ok().or_else(|| whole(&wanted)), whole(given));
    if exactly.is_some() && exactly == given_exactly {
        return Match::Yes;
    }
    if wanted.as_f64() != given.as_f64() || (!wanted.is_f64() && !given.is_f64()) {
        return Match::No;
    }
    // Fractions are compared as floats, as tools compute with them. If digits were lost, equality is unclear.
    if exactly.is_none() && given_exactly.is_none() { Match::Yes } else { Match::Unclear }
}

/// Returns the integer that a number equals exactly, if there is one.
fn whole(number: &Number) -> Option<i128> {
    if let Some(whole) = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)) {
        return Some(whole);
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "whole and far within 128 bits, so it is exact")]
    (float.fract() == 0.0 && float.abs() < 1e38).then_some(float as i128)
}

fn number(text: &str) -> Option<Number> {
    serde_json::from_str(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn met(pattern: &str, argument: &str) -> Match {
        meets(&pattern.into(), &serde_json::from_str(argument).expect("JSON"))
    }

    #[test]
    fn numbers_are_met_by_value() {
        for (pattern, yes, no) in [
            ("1", &["1", "1.0", "1e0", "10e-1", "0.1e1", "\"1\""][..], &["2", "1.5", "-1", "\"x\"", "[1]", "true", "null"][..]),
            ("1.0", &["1", "1.0"], &["1.5"]),
            ("1e2", &["100", "100.0", "1e2"], &["10"]),
            ("0", &["0", "0.0", "-0", "-0.0", "0e9"], &["0.1", "false", "null", "\"\""]),
            ("-0", &["0", "-0.0"], &["1"]),
            ("-7", &["-7", "-7.0", "-70e-1"], &["7"]),
            ("0.5", &["0.5", "5e-1", "0.50"], &["5"]),
            ("9007199254740993", &["9007199254740993"], &["9007199254740992", "9007199254740994"]),
            ("18446744073709551615", &["18446744073709551615"], &["18446744073709551614"]),
            ("10000000000000000", &["1e16", "10000000000000000", "10000000000000000.0"], &["10000000000000001"]),
            ("100000000000000000000", &["1e20"], &["1e21"]),
            ("1?", &["12", "12.0", "1.2e1"], &["1", "120"]),
        ] {
            for argument in yes {
                assert_eq!(met(pattern, argument), Match::Yes, "{pattern} {argument}");
            }
            for argument in no {
                assert_eq!(met(pattern, argument), Match::No, "{pattern} {argument}");
            }
        }
    }

    #[test]
    fn what_depends_on_a_lost_spelling_is_unclear() {
        for (pattern, argument) in [
            ("9007199254740993", "9007199254740993.0"),
            ("18446744073709551617", "1.8446744073709552e19"),
            ("1.*", "1.0"),
            ("-*", "-0.0"),
            ("*00000000000000000", "1e20"),
            ("1", "\"1.0\""),
            ("1", "\" 1e0 \""),
            (r#"{"b":*,"a":*}"#, r#"{"b":1,"a":2}"#),
        ] {
            assert_eq!(met(pattern, argument), Match::Unclear, "{pattern} {argument}");
        }
    }

    #[test]
    fn lists_and_objects_are_met_by_value_words_as_written() {
        for (pattern, argument, wanted) in [
            (r#"[1, "a"]"#, r#"[1.0,"a"]"#, Match::Yes),
            (r#"[1,"a"]"#, r#"["a",1]"#, Match::No),
            ("[10000000000000000]", "[1e16]", Match::Yes),
            (r#"{"b": 1, "a": [true]}"#, r#"{"a":[true],"b":1e0}"#, Match::Yes),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, Match::No),
            (r#"{"a":*,"b":*}"#, r#"{"b":1,"a":2}"#, Match::Yes),
            (r#"*"rm"*"#, r#"["ls","rm"]"#, Match::Yes),
            ("true", "true", Match::Yes),
            ("true", "false", Match::No),
            ("null", "null", Match::Yes),
            ("*", "null", Match::Yes),
            ("git *", r#""git status""#, Match::Yes),
        ] {
            assert_eq!(met(pattern, argument), wanted, "{pattern} {argument}");
        }
        assert_eq!(meets(&"[".into(), &json!([])), Match::No);
    }
}
