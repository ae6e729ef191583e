use proptest::prelude::*;
use serde_json::json;

use super::*;

fn value(text: &str) -> serde_json::Value {
    read(text).unwrap_or_else(|error| panic!("{error:?}")).value()
}

fn mistake(text: &str) -> (usize, String) {
    let error = read(text).expect_err("a mistake");
    (error.position.line, error.message)
}

#[test]
fn values_and_their_places() {
    let node = read("name: hello\ntags:\n  - a\n  - b: 1\n    c: {d: [true]}\n").expect("YAML");
    assert_eq!(node.value(), json!({"name": "hello", "tags": ["a", {"b": 1, "c": {"d": [true]}}]}));
    for (pointer, line) in [("", 1), ("/name", 1), ("/tags", 2), ("/tags/0", 3), ("/tags/1/c/d/0", 5), ("/tags/1/zzz", 4), ("/nothing", 1)]
    {
        assert_eq!(node.locate(pointer).line, line, "{pointer}");
    }
    assert_eq!(value(""), json!({}));
    assert_eq!(value("# only a comment\n"), json!({}));
    assert_eq!(value("a: \"1\"\nb: !!str 2\nc: |\n  x\n  y\n"), json!({"a": "1", "b": "2", "c": "x\ny\n"}));
}

#[test]
fn aliases_stand_for_what_they_name() {
    assert_eq!(value("a: &x [1, 2]\nb: *x\n"), json!({"a": [1, 2], "b": [1, 2]}));
}

#[test]
fn a_bomb_does_not_go_off() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&["a", &level.to_string(), ": &a", &level.to_string(), " [", &below, "]\n"].concat());
    }
    assert!(mistake(&text).1.contains("each alias counts"));
    assert!(read("a: &a [*a]").is_err());
    let long = ["a: &a ", &"x".repeat(500_000), "\nb: [", &"*a, ".repeat(5_000), "*a]\n"].concat();
    assert!(mistake(&long).1.contains("each alias counts"), "bytes count, too");
}

#[test]
fn mistakes_have_a_place_and_a_reason() {
    for (text, line, part) in [
        ("a: 1\n\tb: 2\n", 2, "tabs"),
        ("a:\n\t- x\n", 2, "tabs"),
        ("a: 1\nb: 2\na: 3\n", 3, "first used on line 1"),
        ("a: [1, 2\n", 2, "invalid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "more than one YAML document"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, "merge keys"),
        ("a: !thing 1\n", 1, "unsupported YAML tag"),
        ("query: {{ q }}\n", 1, "a key must be a string"),
    ] {
        let (at, message) = mistake(text);
        assert_eq!(at, line, "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
    let deep = "[".repeat(100) + &"]".repeat(100);
    assert!(mistake(&deep).1.contains("64 levels"));
    assert!(mistake(&"x".repeat(2 << 20)).1.contains("larger"));
}

proptest! {
    #[test]
    fn no_text_is_a_panic(text in "[-a-c:{}\\[\\], \\n\\t&*!|>\"'#%@?0-9.~]{0,60}|\\PC{0,40}") {
        let _ = read(&text);
    }
}
