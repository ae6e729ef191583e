use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Value, JsonError> {
    parse(text.as_bytes(), JsonLimits::ARGUMENTS)
}

/// S30: every hostile document ends in an error that says why; none crashes or overflows the stack.
#[test]
fn hostile_documents_are_refused_by_name() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(read(&deep), Err(JsonError::TooDeep { limit: 64 }));
    assert_eq!(read(&"[".repeat(1_000_000)), Err(JsonError::TooDeep { limit: 64 }));
    assert_eq!(read(&"[".repeat(10 << 20)), Err(JsonError::TooLarge { limit: 1 << 20 }));
    let keys: Vec<_> = (0..30_000).map(|key| format!("\"{key}\":0")).collect();
    assert_eq!(read(&format!("{{{}}}", keys.join(","))), Err(JsonError::TooMany { limit: 10_000 }));
    for (text, part) in [("1e400", "out of range"), (r#""\ud800""#, "hex escape"), ("{\"a\":1} x", "trailing"), ("", "EOF")] {
        match read(text) {
            Err(JsonError::Syntax { message }) => assert!(message.contains(part), "{text}: {message}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(parse(b"\"\xff\"", JsonLimits::ARGUMENTS), Err(JsonError::Syntax { .. })));
}

#[test]
fn documents_with_two_readings_are_refused_by_name() {
    for (text, depth) in [(r#"{"a":1,"a":1}"#, 0), (r#"{"a":{"b":1,"c":2,"b":3}}"#, 1), (r#"[[{"\u0061":1,"a":2}]]"#, 2)] {
        match read(text) {
            Err(JsonError::DuplicateKey { depth: at, .. }) => assert_eq!(at, depth, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["18446744073709551616", "[-9223372036854775809]", r#"{"a":{"b":99999999999999999999}}"#] {
        assert_eq!(read(text), Err(JsonError::WideInteger), "{text}");
    }
}

#[test]
fn exact_numbers_stay_exact() {
    assert_eq!(read("9007199254740993").map(|value| value.to_string()), Ok("9007199254740993".into()));
    assert_eq!(read("18446744073709551615"), Ok(json!(u64::MAX)));
    assert_eq!(read("-9223372036854775808"), Ok(json!(i64::MIN)));
    assert!(read("1e20").is_ok() && read("[0.12345678901234567890123, 1e19]").is_ok());
    assert!(read(r#"["18446744073709551616", 1e30]"#).is_ok(), "digits inside a string are text");
}

#[test]
fn the_deepest_allowed_document_is_read() {
    let at = "[".repeat(64) + &"]".repeat(64);
    let value = read(&at).expect("64 levels");
    assert_eq!(measure(&value, JsonLimits::ARGUMENTS), Ok(()));
    assert_eq!(measure(&json!([value]), JsonLimits::ARGUMENTS), Err(JsonError::TooDeep { limit: 64 }));
    let long = json!("x".repeat((1 << 20) + 1));
    assert_eq!(measure(&long, JsonLimits::ARGUMENTS), Err(JsonError::TooLarge { limit: 1 << 20 }));
    assert_eq!(measure(&json!(vec![0; 10_000]), JsonLimits::ARGUMENTS), Err(JsonError::TooMany { limit: 10_000 }));
}

#[test]
fn canonical_text_ignores_order_and_spelling_of_numbers() {
    let one = json!({"b": [1.0, -0.0, 1.5], "a": {"y": null, "x": "é\n"}});
    let other = json!({"a": {"x": "é\n", "y": null}, "b": [1, 0, 1.5]});
    assert_eq!(canonical(&one), r#"{"a":{"x":"é\n","y":null},"b":[1,0,1.5]}"#);
    assert_eq!(canonical(&one), canonical(&other));
    assert_ne!(canonical(&json!("1")), canonical(&json!(1)));
}
