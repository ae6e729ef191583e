//! Usage in responses, valid or not: the response itself is never lost over it.

use helve_core::{ModelDelta, Usage};
use serde_json::Value;

use super::fixtures::read;
use super::wires;
use crate::Wire;

/// A response, whole and in events, with this account of its cost.
fn responses(wire: &dyn Wire, usage: &str) -> [String; 2] {
    match wire.name() {
        "anthropic" => [
            format!(r#"{{"content": [{{"type": "text", "text": "hi"}}], "stop_reason": "end_turn", "usage": {usage}}}"#),
            format!(
                "data: {{\"type\": \"message_start\", \"message\": {{\"usage\": {usage}}}}}\n\n\
                 data: {{\"type\": \"content_block_delta\", \"delta\": {{\"text\": \"hi\"}}}}\n\n\
                 data: {{\"type\": \"message_delta\", \"delta\": {{\"stop_reason\": \"end_turn\"}}, \"usage\": {usage}}}\n\n"
            ),
        ],
        "gemini" => {
            let whole = format!(
                r#"{{"candidates": [{{"content": {{"parts": [{{"text": "hi"}}]}}, "finishReason": "STOP"}}], "usageMetadata": {usage}}}"#
            );
            [whole.clone(), format!("data: {whole}\n\n")]
        }
        "openai_chat" => [
            format!(r#"{{"choices": [{{"message": {{"content": "hi"}}, "finish_reason": "stop"}}], "usage": {usage}}}"#),
            format!("data: {{\"choices\": [{{\"delta\": {{\"content\": \"hi\"}}, \"finish_reason\": \"stop\"}}], \"usage\": {usage}}}\n\n"),
        ],
        _ => {
            let whole =
                format!(r#"{{"status": "completed", "output": [{{"type": "message", "content": [{{"text": "hi"}}]}}], "usage": {usage}}}"#);
            [whole.clone(), format!("data: {{\"type\": \"response.completed\", \"response\": {whole}}}\n\n")]
        }
    }
}

/// What is understood of the cost of a response that is read well.
fn used(wire: &dyn Wire, usage: &str) -> Usage {
    let [one, other] = responses(wire, usage).map(|response| {
        let (deltas, ended) = read(wire, response.as_bytes(), 7);
        assert_eq!(ended, Ok(()), "{}: {response}", wire.name());
        assert!(deltas.iter().any(|delta| delta == ModelDelta::Text("hi")), "{}: {response}", wire.name());
        deltas.iter().filter_map(|delta| if let ModelDelta::Usage(usage) = delta { Some(usage) } else { None }).last()
    });
    assert_eq!(one, other, "{}: {usage}", wire.name());
    one.unwrap_or_default()
}

/// The names of what was read and of what was written.
fn names(wire: &dyn Wire) -> (&'static str, &'static str) {
    match wire.name() {
        "gemini" => ("promptTokenCount", "candidatesTokenCount"),
        "openai_chat" => ("prompt_tokens", "completion_tokens"),
        _ => ("input_tokens", "output_tokens"),
    }
}

#[test]
fn counts_are_read_however_they_are_written() {
    let most = u64::MAX;
    let cases = [
        ("7", 7),
        ("7.9", 7),
        ("7e2", 700),
        ("\"7\"", 7),
        ("\" 7.9 \"", 7),
        ("-3", 0),
        ("-0.5", 0),
        ("\"-3\"", 0),
        ("18446744073709551615", most),
        ("18446744073709551616", most),
        ("1e999", most),
        ("9007199254740993", 9_007_199_254_740_993),
        ("null", 0),
        ("true", 0),
        ("\"many\"", 0),
        ("\"NaN\"", 0),
        ("NaN", 0),
        ("-Infinity", 0),
        ("[1]", 0),
        ("{\"all\": 1}", 0),
    ];
    for wire in wires() {
        let (input, output) = names(&*wire);
        for (written, count) in cases {
            let usage = used(&*wire, &format!("{{\"{input}\": {written}, \"{output}\": 5}}"));
            assert_eq!((usage.input_tokens, usage.output_tokens), (count, 5), "{}: {written}", wire.name());
        }
    }
}

#[test]
fn counts_that_are_added_up_never_overflow() {
    let most = u64::MAX;
    for wire in wires() {
        let usage = match wire.name() {
            "anthropic" => {
                format!(
                    r#"{{"input_tokens": {most}, "cache_creation_input_tokens": {most}, "cache_read_input_tokens": {most}, "output_tokens": 1}}"#
                )
            }
            "gemini" => format!(
                r#"{{"promptTokenCount": {most}, "toolUsePromptTokenCount": {most}, "candidatesTokenCount": {most}, "thoughtsTokenCount": {most}}}"#
            ),
            _ => continue,
        };
        let usage = used(&*wire, &usage);
        assert_eq!((usage.input_tokens, usage.tokens()), (most, most), "{}", wire.name());
    }
}

#[test]
fn a_cost_that_is_none_is_not_told() {
    let cases = [
        ("0.5", Some(0.5)),
        ("\"0.5\"", Some(0.5)),
        ("0", Some(0.0)),
        ("-1", None),
        ("1e999", None),
        ("NaN", None),
        ("Infinity", None),
        ("\"NaN\"", None),
        ("\"inf\"", None),
        ("\"cheap\"", None),
        ("null", None),
        ("[]", None),
    ];
    for wire in wires().iter().filter(|wire| wire.name().starts_with("openai")) {
        let (input, _) = names(&**wire);
        for (written, cost) in cases {
            let usage = used(&**wire, &format!("{{\"{input}\": 3, \"cost\": {written}}}"));
            assert_eq!((usage.input_tokens, usage.cost), (3, cost), "{}: {written}", wire.name());
        }
    }
}

#[test]
fn an_account_of_another_form_is_none() {
    for wire in wires() {
        for usage in ["null", "[]", "\"free\"", "5", "true", "NaN", "{}"] {
            assert_eq!(used(&*wire, usage), Usage::default(), "{}: {usage}", wire.name());
        }
        let details = match wire.name() {
            "openai_chat" => "prompt_tokens_details",
            "openai_responses" => "input_tokens_details",
            _ => continue,
        };
        for (value, cached) in [("[]", 0), ("5", 0), ("{\"cached_tokens\": \"2\"}", 2), ("{\"cached_tokens\": -2}", 0)] {
            let usage = used(&*wire, &format!("{{\"{}\": 3, \"{details}\": {value}}}", names(&*wire).0));
            assert_eq!((usage.input_tokens, usage.cached_tokens), (3, cached), "{}: {value}", wire.name());
        }
    }
}

#[test]
fn what_is_no_json_at_all_stays_an_error() {
    for wire in wires() {
        for response in responses(&*wire, "{\"a\": NaN, \"b\": nothing}") {
            assert!(serde_json::from_str::<Value>(&response).is_err());
            assert!(read(&*wire, response.as_bytes(), usize::MAX).1.is_err(), "{}: {response}", wire.name());
        }
    }
}
