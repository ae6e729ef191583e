//! What must hold for any message: everything written can be read, nothing is lost, and pieces make no difference.

#![allow(clippy::expect_used, clippy::panic, reason = "tests say what they expect")]

use std::sync::Arc;

use helve_dialect::{Content, Dialect, FaultKind, Item, Items, Mode, Scanner, ToolTable, WrittenCall, parse};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Reads bytes in pieces that end at these places.
fn in_pieces(input: &[u8], cuts: &[usize], dialect: &Dialect, mode: Mode, tools: &Arc<ToolTable>) -> Vec<Item> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    cuts.sort_unstable();
    let mut scanner = Scanner::new(dialect.clone(), mode, Arc::clone(tools));
    let mut items = Items::default();
    let mut from = 0;
    for cut in cuts {
        scanner.push(&input[from..cut], &mut |event| items.push(event));
        from = cut;
    }
    scanner.push(&input[from..], &mut |event| items.push(event));
    scanner.finish(&mut |event| items.push(event));
    items.into_vec()
}

/// Spans cover the input, and text is its span.
fn assert_conserved(input: &[u8], items: &[Item]) {
    let mut at = 0;
    for item in items {
        assert_eq!(item.span.start, at, "a gap or an overlap in {items:?}");
        at = item.span.end;
        if let Content::Text(text) | Content::Reasoning(text) = &item.content {
            assert_eq!(*text, String::from_utf8_lossy(&input[item.span.clone()]), "text is not its span");
        }
    }
    assert_eq!(at, input.len(), "the end is missing");
}

/// Pieces that formats are made of, so that random input is not only noise.
fn fragments() -> Vec<String> {
    let mut fragments: Vec<String> = [
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        "\\",
        ":",
        ",",
        ";",
        "\n",
        " ",
        "`",
        "```",
        "```json\n",
        "\n```\n",
        "<",
        ">",
        "</",
        "<|",
        "|>",
        "<![CDATA[",
        "]]>",
        "name",
        "\"name\": \"f\"",
        "\"arguments\": {}",
        "{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
        "{\"tool_calls\": [",
        "f(a=1)",
        "call:f{a:1}",
        "f",
        "=",
        "a",
        "<think>",
        "</think>",
        "<function=f>",
        "</function>",
        "<parameter=a>",
        "</parameter>",
        "<invoke name=\"f\">",
        "</invoke>",
        "<parameter name=\"a\">",
        "<name>f</name>",
        "<params>",
        "</params>",
        "<a>",
        "</a>",
        "//",
        "/*",
        "*/",
        "\u{4f60}",
        "🦀",
        "\u{fffd}",
        "to=functions.f",
        "<|message|>",
        "\r\n",
        "1",
        "true",
        "null",
        "\\u",
        "\\ud83d",
    ]
    .iter()
    .map(|text| (*text).to_owned())
    .collect();
    let (name, arguments) = ("f", Map::from_iter([("a".to_owned(), json!("x"))]));
    for format in Dialect::names() {
        let call = WrittenCall { id: "c1", name, arguments: &arguments };
        fragments.push(Dialect::write(format, &[call]).expect("a known format"));
        fragments.push(Dialect::write(format, &[call, call]).expect("a known format").chars().take(40).collect());
    }
    fragments
}

fn messages() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(fragments()).prop_map(String::into_bytes),
        2 => prop::collection::vec(any::<u8>(), 0..6),
        1 => "[ -~]{0,12}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn dialects() -> impl Strategy<Value = Dialect> {
    let names: Vec<&str> = Dialect::names().chain(["auto", "auto", "auto", "auto", "auto"]).collect();
    prop::sample::select(names).prop_map(|name| Dialect::named(name).expect("a known name"))
}

fn tables() -> impl Strategy<Value = Arc<ToolTable>> {
    let known = ToolTable::new([("f", json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}))]);
    prop::sample::select(vec![Arc::new(known), Arc::new(ToolTable::unknown())])
}

fn modes() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Lenient, Mode::Strict])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn pieces_make_no_difference_and_nothing_is_lost(
        input in messages(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        dialect in dialects(),
        tools in tables(),
        mode in modes(),
    ) {
        let whole = in_pieces(&input, &[], &dialect, mode, &tools);
        assert_conserved(&input, &whole);
        let cut = in_pieces(&input, &cuts, &dialect, mode, &tools);
        prop_assert_eq!(&whole, &cut);
        let each: Vec<usize> = (0..=input.len()).collect();
        let single = in_pieces(&input, &each, &dialect, mode, &tools);
        prop_assert_eq!(&whole, &single);
    }
}

/// A value and its schema.
fn values() -> impl Strategy<Value = (Value, Value)> {
    let text = prop_oneof![
        "[a-zA-Z0-9 .,;:!?/_=+-]{1,24}",
        "[ -~\n]{0,24}",
        Just("  lines\n\tand tabs \n".to_owned()),
        Just("if (a < b && c > d) { return \"x\"; }".to_owned()),
        Just("你好，世界 🦀 naïve".to_owned()),
        Just("007".to_owned()),
        Just("null".to_owned()),
        Just("{\"a\": [1, 2]}".to_owned()),
    ];
    let string = text.prop_map(|text| (json!(text), json!({"type": "string"})));
    let integer = any::<i32>().prop_map(|number| (json!(number), json!({"type": "integer"})));
    let number = (-1000i32..1000).prop_map(|number| (json!(f64::from(number) / 8.0), json!({"type": "number"})));
    let boolean = any::<bool>().prop_map(|yes| (json!(yes), json!({"type": "boolean"})));
    let array =
        prop::collection::vec(any::<i16>(), 1..4).prop_map(|items| (json!(items), json!({"type": "array", "items": {"type": "integer"}})));
    let object = prop::collection::btree_map("[a-z]{1,6}", "[a-z0-9 ]{1,8}", 1..4).prop_map(|members| {
        let properties: Map<String, Value> = members.keys().map(|key| (key.clone(), json!({"type": "string"}))).collect();
        (json!(members), json!({"type": "object", "properties": properties}))
    });
    prop_oneof![4 => string, 1 => integer, 1 => number, 1 => boolean, 1 => array, 1 => object]
}

/// A call with the schema of its tool.
fn calls() -> impl Strategy<Value = (String, Map<String, Value>, Value)> {
    let name = "[a-z][a-z0-9_]{0,10}(\\.[a-z][a-z0-9_]{0,6})?";
    (name, prop::collection::btree_map("[a-z][a-z0-9_]{0,8}", values(), 0..4)).prop_map(|(name, members)| {
        let properties: Map<String, Value> = members.iter().map(|(key, (_, schema))| (key.clone(), schema.clone())).collect();
        let arguments = members.into_iter().map(|(key, (value, _))| (key, value)).collect();
        (name, arguments, json!({"type": "object", "properties": properties}))
    })
}

/// Whether text without escapes can hold these values.
fn fits(format: &str, arguments: &Map<String, Value>) -> bool {
    let clean = |text: &str| match format {
        "functiongemma" => !text.contains("<escape>"),
        "gemma4" => !text.contains("<|\"|>"),
        // Tags without escapes cannot hold a closing tag that the structure seems to confirm.
        _ => !text.contains("</") && !text.contains("<|close|>"),
    };
    // An element that is empty, or begins like one, is not told from its text.
    let plain = |value: &Value| value.as_str().is_none_or(clean);
    arguments.values().all(|value| plain(value) && value.as_object().is_none_or(|members| members.values().all(plain)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn everything_written_can_be_read(
        format in prop::sample::select(Dialect::names().filter(|name| *name != "glm4_9b").collect::<Vec<_>>()),
        mut calls in prop::collection::vec(calls(), 1..4),
        before in prop_oneof![Just(""), Just("Let me see.\n"), Just("好的。\n\n")],
        after in prop_oneof![Just(""), Just("\n\nI will report back.")],
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let marked = !matches!(format, "llama3_json" | "pythonic" | "xlam");
        // One tool, one schema.
        calls.sort_by(|a, b| a.0.cmp(&b.0));
        calls.dedup_by(|a, b| a.0 == b.0);
        if matches!(format, "gigachat3" | "react") {
            calls.truncate(1);
        }
        prop_assume!(calls.iter().all(|(_, arguments, _)| fits(format, arguments)));
        let ids: Vec<String> = (1..=calls.len()).map(|number| format!("call_{number}")).collect();
        let written: Vec<WrittenCall<'_>> =
            calls.iter().zip(&ids).map(|((name, arguments, _), id)| WrittenCall { id, name, arguments }).collect();
        let text = Dialect::write(format, &written).expect("a known format");
        let (before, after) = if marked { (before, after) } else { ("", "") };
        let after = if matches!(format, "react" | "muse_glimmer") { "" } else { after };
        let message = format!("{before}{text}{after}");
        let tools = Arc::new(ToolTable::new(calls.iter().map(|(name, _, schema)| (name.clone(), schema.clone()))));
        let dialect = Dialect::named(format).expect("a known format");
        for items in [parse(&message, &dialect, Mode::Strict, &tools), in_pieces(message.as_bytes(), &cuts, &dialect, Mode::Strict, &tools)] {
            assert_conserved(message.as_bytes(), &items);
            let found: Vec<_> = items.iter().filter_map(|item| match &item.content {
                Content::Call(call) => Some((call.name.clone(), Value::Object(call.arguments.clone()))),
                _ => None,
            }).collect();
            let wanted: Vec<_> = calls.iter().map(|(name, arguments, _)| (name.clone(), Value::Object(arguments.clone()))).collect();
            prop_assert_eq!(found, wanted, "{}", message);
            let words: String = items.iter().filter_map(|item| match &item.content {
                Content::Text(text) => Some(text.as_str()),
                _ => None,
            }).collect();
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(squeezed(&words), squeezed(&format!("{before} {after}")), "{}", message);
        }
    }
}

/// Inputs that a fuzzer once found to be read differently in pieces.
#[test]
fn what_was_once_found_stays_found() {
    let long = "é".repeat(700);
    let inputs = [
        ("deepseek_v31", format!("<｜tool▁call▁begin｜>g{long}<｜tool▁calls▁end｜> and more")),
        ("deepseek_v31", format!("<｜tool▁call▁begin｜>{}<｜tool▁call▁end｜>", "é".repeat(400))),
        ("gemma3_tool_code", "```tool_code\n_(a=], o=Ok.\n```tool_code\nf(a=\"x\")\n```".to_owned()),
        ("pythonic", "\u{b}\u{b}[f(a=\"x\")]".to_owned()),
        ("hermes", "`<think>```\n<tool_call>{}</tool_call>".to_owned()),
        ("harmony", format!("<|channel|>commentary{long}<|message|>x")),
        ("functionary_v32", ">>>f\n\u{17}{\"a\": \"x\"}>>>f\n{}".to_owned()),
        (
            "kimi_k3",
            format!(
                "<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|><|open|>argument key=\"a\"<|sep|>x<|open|>argument key=\"n{long}\"<|sep|>y"
            ),
        ),
    ];
    let tools = Arc::new(ToolTable::new([("f", json!({"type": "object", "properties": {"a": {"type": "string"}}}))]));
    for (dialect, input) in inputs {
        let dialect = Dialect::named(dialect).expect("a known name");
        for mode in [Mode::Lenient, Mode::Strict] {
            let whole = in_pieces(input.as_bytes(), &[], &dialect, mode, &tools);
            assert_conserved(input.as_bytes(), &whole);
            let each: Vec<usize> = (0..=input.len()).collect();
            assert_eq!(whole, in_pieces(input.as_bytes(), &each, &dialect, mode, &tools), "{input}");
        }
    }
}

/// A message may hold so many calls, and so many control tokens.
const MAX_CALLS: usize = 1024;
const MAX_MARKUP: usize = 16 * 1024;

/// What is beyond the limits is text: there are few items, however long the message is, and all of it is there.
#[test]
fn a_message_holds_a_bounded_number_of_items() {
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let fence = format!("```json\n[{}{{\"name\": \"f\", \"arguments\": {{}}}}]\n```", "{\"name\": \"f\", \"arguments\": {}},".repeat(1000));
    let inputs = [
        ("mistral_v3", "[TOOL_CALLS]".repeat(4000), 1025, 2),
        ("hermes", call.repeat(2000), 1025, 2),
        ("hermes", format!("{call} words ").repeat(2000), 1025, 1026),
        ("hermes", format!("<tool_call>[{}", "1,".repeat(2000)).repeat(3), 3, 1),
        ("auto", "<eos>x".repeat(2 * MAX_MARKUP), 0, MAX_MARKUP + 1),
        ("auto", "<think>x</think>".repeat(MAX_MARKUP), 0, MAX_MARKUP + 1),
        ("hermes", format!("{}{fence}", call.repeat(500)), 1025, 1),
    ];
    let tools = Arc::new(ToolTable::unknown());
    for (dialect, input, most, most_texts) in inputs {
        let dialect = Dialect::named(dialect).expect("a known name");
        let items = in_pieces(input.as_bytes(), &[], &dialect, Mode::Lenient, &tools);
        assert_conserved(input.as_bytes(), &items);
        let count = |wanted: fn(&Content) -> bool| items.iter().filter(|item| wanted(&item.content)).count();
        let calls = count(|content| matches!(content, Content::Call(_) | Content::Malformed(_)));
        let texts = count(|content| matches!(content, Content::Text(_) | Content::Reasoning(_)));
        assert!(calls == most && texts <= most_texts, "{calls} calls and {texts} texts");
        let last =
            items.iter().rev().find_map(|item| if let Content::Malformed(malformed) = &item.content { Some(malformed.kind) } else { None });
        assert!(calls <= MAX_CALLS || last == Some(FaultKind::TooMany), "{last:?}");
        let sevenths: Vec<usize> = (0..input.len()).step_by(7).collect();
        assert!(items == in_pieces(input.as_bytes(), &sevenths, &dialect, Mode::Lenient, &tools), "pieces make a difference");
    }
}

/// Values take many times the memory of their text.
#[test]
fn calls_hold_a_bounded_number_of_values() {
    let tools = Arc::new(ToolTable::unknown());
    let values = |count: usize| format!("<tool_call>{{\"name\": \"f\", \"arguments\": {{\"a\": [{}0]}}}}</tool_call>", "0,".repeat(count));
    let kinds = |text: &str| -> Vec<Option<FaultKind>> {
        let items = parse(text, &Dialect::auto(), Mode::Lenient, &tools);
        assert_conserved(text.as_bytes(), &items);
        let kind = |item: Item| match item.content {
            Content::Call(_) => Some(None),
            Content::Malformed(malformed) => Some(Some(malformed.kind)),
            _ => None,
        };
        items.into_iter().filter_map(kind).collect()
    };
    assert_eq!(kinds(&values(90_000)), [None]);
    assert_eq!(kinds(&values(110_000)), [Some(FaultKind::TooLarge)]);
    let several = [values(60_000), values(60_000), values(10)].concat();
    assert_eq!(kinds(&several), [None, Some(FaultKind::TooLarge), None], "all calls of a message share the limit");
    let parameters = format!("<tool_call><name>f</name><params>{}</params></tool_call>", "<a/>".repeat(110_000));
    assert_eq!(kinds(&parameters), [Some(FaultKind::TooLarge)]);
    let elements = format!("<tool_call><name>f</name><params><a>{}</a></params></tool_call>", "<b/>".repeat(110_000));
    assert_eq!(kinds(&elements), [Some(FaultKind::TooLarge)]);
}
