//! The reader beside `serde_json`, its repairs one by one, and extents in pieces.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn lenient(text: &str) -> Result<(Value, Vec<&'static str>), FaultKind> {
    read(text, Syntax::Json, Mode::Lenient, usize::MAX)
        .map(|reading| (reading.value, reading.repairs.iter().map(Repair::as_str).collect()))
        .map_err(|fault| fault.kind)
}

fn strict(text: &str) -> Result<Value, FaultKind> {
    read(text, Syntax::Json, Mode::Strict, 0).map(|reading| reading.value).map_err(|fault| fault.kind)
}

#[test]
fn each_repair_has_its_name() {
    let cases = [
        ("{\"a\": 1,}", json!({"a": 1}), "trailing_comma"),
        ("{'a': 'b'}", json!({"a": "b"}), "single_quotes"),
        ("{a: 1}", json!({"a": 1}), "unquoted"),
        ("{\"a\": 1 /* one */}", json!({"a": 1}), "comment"),
        ("{\"a\": 1 // one\n}", json!({"a": 1}), "comment"),
        ("{\"a\": True}", json!({"a": true}), "foreign_literal"),
        ("{\"a\": +1}", json!({"a": 1}), "odd_number"),
        ("{\"a\": .5}", json!({"a": 0.5}), "odd_number"),
        ("{\"a\": 007}", json!({"a": "007"}), "odd_number"),
        ("{\"a\": \"x\ny\"}", json!({"a": "x\ny"}), "raw_control"),
        ("{\"a\": \"\\d\"}", json!({"a": "\\d"}), "bad_escape"),
        ("{\"a\": \"\\ud83d\"}", json!({"a": "\u{fffd}"}), "lone_surrogate"),
        ("{\"a\": [1", json!({"a": [1]}), "missing_bracket"),
        ("{\"a\": 1 \"b\": 2}", json!({"a": 1, "b": 2}), "missing_comma"),
        ("{\"a\": 1, \"a\": 2}", json!({"a": 2}), "duplicate_key"),
    ];
    for (text, value, repair) in cases {
        assert_eq!(lenient(text), Ok((value, vec![repair])), "{text}");
        assert!(strict(text).is_err(), "{text}");
    }
}

#[test]
fn no_integer_is_changed_and_no_second_value_goes_unnoticed() {
    let told = |text: &str, syntax, mode| read(text, syntax, mode, 2).map(|reading| (reading.value, reading.repairs));
    for text in ["18446744073709551616", "-9223372036854775809", "99999999999999999999"] {
        for syntax in [Syntax::Json, Syntax::Python, Syntax::Braces("|")] {
            let list = format!("[{text}]");
            assert_eq!(told(&list, syntax, Mode::Strict).map_err(|fault| fault.kind), Err(FaultKind::Syntax), "{text}");
            assert_eq!(told(&list, syntax, Mode::Lenient), Ok((json!([text]), Repairs::default().with(Repair::WideInteger))), "{text}");
        }
    }
    for text in ["18_446_744_073_709_551_616", "+18446744073709551616"] {
        assert!(told(text, Syntax::Python, Mode::Lenient).is_ok_and(|(_, repairs)| repairs.contains(Repair::WideInteger)), "{text}");
    }
    for (text, value) in [("18446744073709551615", json!(u64::MAX)), ("-9223372036854775808", json!(i64::MIN)), ("1e20", json!(1e20))] {
        assert_eq!(strict(text), Ok(value), "{text}");
    }
    assert_eq!(json_number("18446744073709551616"), None, "as a text between tags");
    for text in ["{\"a\": 1, \"a\": 1}", "{\"x\": [{\"a\": 1, \"\\u0061\": 2}]}", "{\"a\": 1, \"a\": [2"] {
        let repairs = lenient(text).expect("a value").1;
        assert!(repairs.contains(&"duplicate_key"), "{text}: {repairs:?}");
    }
}

#[test]
fn nothing_is_guessed() {
    for text in [
        "{\"a\": }",
        "{\"a\": b}",
        "{\"a\": 1, , }",
        "{\"a\" 1}",
        "{\"a\": NaN}",
        "{\"a\": 1e999}",
        "{\"a\": \"b",
        "{\"a\"",
        "[1}",
        "{\"a\": [1}",
        "",
    ] {
        assert!(lenient(text).is_err(), "{text}");
    }
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert_eq!(lenient(&deep), Err(FaultKind::TooDeep));
}

#[test]
fn python_is_read_as_it_is_written() {
    let read = |text| read_arguments(text, Mode::Strict).map(|reading| Value::Object(reading.value)).map_err(|fault| fault.kind);
    assert_eq!(
        read("(a='x\\'y', b=[1, (2, 3)], c={'k': None}, d=-1_000, e='a' 'b', f=r'\\d', g=\"\"\"q\"q\"\"\", h=0x10,)"),
        Ok(json!({"a": "x'y", "b": [1, [2, 3]], "c": {"k": null}, "d": -1000, "e": "ab", "f": "\\d", "g": "q\"q", "h": 16}))
    );
    for text in ["(a=open('x'))", "(a=1+1)", "(a=b)", "(a=f'x')", "(1)", "(a=true)"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn a_fault_says_where() {
    let fault = read("{\"name\": oops}", Syntax::Json, Mode::Lenient, 0).err().map(|fault| fault.error);
    assert_eq!(fault.as_deref(), Some("invalid JSON at character 10: expected a JSON value, near \"oops}\""));
}

/// Where a value ends, looked for in pieces.
fn extent(text: &str, syntax: Syntax, piece: usize) -> Reach {
    let mut extent = Extent::new(syntax, 0);
    for end in (0..text.len()).step_by(piece).chain([text.len()]) {
        if text.is_char_boundary(end) {
            match extent.advance(&text[..end], &[], false) {
                Reach::More => {}
                found => return found,
            }
        }
    }
    extent.advance(text, &[], true)
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no other numbers", |number| number.is_finite()).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[\"\\\\/bfnrt{}\\[\\]:, \n]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_is_read_as_serde_json_reads_it(value in values(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap_or_default();
        prop_assert_eq!(strict(&text), Ok(value.clone()));
        prop_assert_eq!(lenient(&text), Ok((value, Vec::new())));
    }

    #[test]
    fn strict_reading_takes_nothing_that_serde_json_refuses(text in "[\\[\\]{}\":, 0-9a-eE.+\\-\\\\ntrufls]{0,24}") {
        let theirs = serde_json::from_str::<Value>(&text).ok();
        let ours = strict(&text).ok();
        // Twice the same key and integers beyond 64 bits are what is stricter here.
        let wide = text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 18);
        let stricter = ours.is_none() && (wide || strict(&text) == Err(FaultKind::DuplicateKey));
        prop_assert!(ours == theirs || stricter, "{text}: {ours:?} {theirs:?}");
    }

    #[test]
    fn an_extent_ends_where_its_value_does(value in values(), behind in "[a-z \\]}]{0,6}", piece in 1usize..7) {
        let text = json!({"v": value}).to_string();
        let reach = extent(&format!("{text}{behind}"), Syntax::Json, piece);
        prop_assert_eq!(reach, Reach::Whole(text.len()));
    }
}
