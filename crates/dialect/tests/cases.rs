//! Messages of models and what they mean, in every chunking.
//!
//! `cases/public.jsonl` has 132 cases with ground truth of the Berkeley Function Calling Leaderboard (Apache-2.0, Copyright
//! the Gorilla LLM team, UC Berkeley), rendered into the formats. `cases/own.jsonl` and `cases/quirks.jsonl` are Helve's own.

#![allow(clippy::expect_used, clippy::panic, reason = "tests say what they expect")]

use std::sync::Arc;

use helve_dialect::{Content, Dialect, Item, Items, Mode, Scanner, ToolTable};
use serde_json::Value;

/// Reads a text in pieces of so many characters; 0 is the whole text, and a negative number cuts in odd places.
fn scan(text: &str, pieces: i32, dialect: &Dialect, mode: Mode, tools: &Arc<ToolTable>) -> Vec<Item> {
    let mut scanner = Scanner::new(dialect.clone(), mode, Arc::clone(tools));
    let mut items = Items::default();
    let mut seed = u64::from(pieces.unsigned_abs());
    let mut rest = text;
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = match pieces {
            0 => usize::MAX,
            1.. => usize::try_from(pieces).expect("a size"),
            _ => 1 + usize::try_from(seed >> 40).expect("a size") % 9,
        };
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        scanner.push_str(&rest[..end], &mut |event| items.push(event));
        rest = &rest[end..];
    }
    scanner.finish(&mut |event| items.push(event));
    items.into_vec()
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether two values are the same; numbers by what they are worth.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other)),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len() && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

/// What is wrong with the items of a case, if anything.
fn fault(case: &Value, items: &[Item]) -> Option<String> {
    let text = case["text"].as_str().expect("a text");
    let mut at = 0;
    for item in items {
        if item.span.start != at {
            return Some(format!("spans do not meet at byte {at}"));
        }
        at = item.span.end;
        if let Content::Text(words) = &item.content
            && text.get(item.span.clone()) != Some(words)
        {
            return Some("a text is not its span".to_owned());
        }
    }
    if at != text.len() {
        return Some(format!("spans end at {at} of {}", text.len()));
    }
    let calls: Vec<_> = items.iter().filter_map(|item| if let Content::Call(call) = &item.content { Some(call) } else { None }).collect();
    let wanted = case["expected_calls"].as_array().expect("calls");
    if calls.len() != wanted.len() {
        return Some(format!("{} calls instead of {}: {items:?}", calls.len(), wanted.len()));
    }
    for (call, wanted) in calls.iter().zip(wanted) {
        let arguments = Value::Object(call.arguments.clone());
        let id = wanted.get("id").is_none_or(|id| id.is_null() || id == call.id.as_str());
        if wanted["name"] != call.name.as_str() || !same(&arguments, &wanted["arguments"]) || !id {
            return Some(format!("{call:?} instead of {wanted}"));
        }
    }
    let joined = |wanted: fn(&Content) -> Option<&str>| items.iter().filter_map(|item| wanted(&item.content)).collect::<String>();
    let words = joined(|content| if let Content::Text(text) = content { Some(text) } else { None });
    if let Some(expected) = case["expected_text"].as_str() {
        let fits = if case["text_cmp"] == "exact" { words == expected } else { folded(&words) == folded(expected) };
        if !fits {
            return Some(format!("text {words:?} instead of {expected:?}"));
        }
    }
    let thoughts = joined(|content| if let Content::Reasoning(text) = content { Some(text) } else { None });
    if let Some(expected) = case["expected_reasoning"].as_str()
        && folded(&thoughts) != folded(expected)
    {
        return Some(format!("thoughts {thoughts:?} instead of {expected:?}"));
    }
    let malformed = items.iter().any(|item| matches!(item.content, Content::Malformed(_)));
    (case["expect_incomplete"] == true && !malformed).then(|| "nothing is malformed".to_owned())
}

fn check(cases: &str) {
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let dialect = case["format"].as_str().and_then(Dialect::named).expect("a dialect");
        let mode = if case["mode"] == "strict" { Mode::Strict } else { Mode::Lenient };
        let tools = if case["tools"].is_null() { ToolTable::unknown() } else { ToolTable::from_json(&case["tools"]).expect("tools") };
        let tools = Arc::new(tools);
        for pieces in [0, 1, 2, 3, 4, 7, -11] {
            let items = scan(case["text"].as_str().expect("a text"), pieces, &dialect, mode, &tools);
            if let Some(fault) = fault(&case, &items) {
                wrong.push(format!("{} in pieces of {pieces}: {fault}", case["id"]));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases fail:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn public_cases() {
    check(include_str!("cases/public.jsonl"));
}

#[test]
fn own_cases() {
    check(include_str!("cases/own.jsonl"));
}

#[test]
fn quirks_of_models() {
    check(include_str!("cases/quirks.jsonl"));
}
