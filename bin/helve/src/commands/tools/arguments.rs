//! Parses the arguments of a call: a JSON object, `key=value` pairs, or JSON on stdin.

use std::io::Read;

use helve::internal::json::{self, JsonLimits};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Reads the arguments of a call. Values of pairs are strings; the executor converts them to the types in the tool's schema.
pub fn read(words: &[String]) -> Result<Value, Failure> {
    match words {
        [] => Ok(Value::Object(Map::new())),
        [only] if only == "-" => read_stdin(),
        [only] if only.trim_start().starts_with('{') => parse(only.as_bytes()),
        pairs => read_pairs(pairs),
    }
}

fn parse(text: &[u8]) -> Result<Value, Failure> {
    json::parse(text, JsonLimits::ARGUMENTS).map_err(|error| {
        Failure::usage(format_args!("the arguments are invalid: {error}")).hint("quote the JSON for your shell: '{\"key\": \"value\"}'")
    })
}

fn read_stdin() -> Result<Value, Failure> {
    let mut text = Vec::new();
    let most = JsonLimits::ARGUMENTS.bytes as u64 + 1;
    std::io::stdin()
        .take(most)
        .read_to_end(&mut text)
        .map_err(|error| Failure::new("failed", format_args!("cannot read stdin: {error}")))?;
    if text.trim_ascii().is_empty() { Ok(Value::Object(Map::new())) } else { parse(&text) }
}

fn read_pairs(pairs: &[String]) -> Result<Value, Failure> {
    let mut arguments = Map::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::usage(format_args!("`{pair}` is neither `key=value` nor a JSON object"))
                .hint("write arguments as key=value, or as one JSON object in quotes"));
        };
        if arguments.insert(key.to_owned(), value.into()).is_some() {
            return Err(Failure::usage(format_args!("duplicate argument `{key}`")));
        }
    }
    Ok(Value::Object(arguments))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(words: &[&str]) -> Result<Value, String> {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        read(&words).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn pairs_and_json_are_told_apart() {
        assert_eq!(words(&[]), Ok(json!({})));
        assert_eq!(words(&[r#" {"a": 1}"#]), Ok(json!({"a": 1})));
        assert_eq!(words(&["a=1", "b=x=y", "c="]), Ok(json!({"a": "1", "b": "x=y", "c": ""})));
        for wrong in [&["a"][..], &["=1"], &["{"], &["a=1", "a=2"], &[r#"{"a":1,"a":2}"#]] {
            assert!(words(wrong).is_err(), "{wrong:?}");
        }
    }
}
