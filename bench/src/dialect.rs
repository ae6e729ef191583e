//! How fast calls are found in text: whole and in small pieces, beside what only reads JSON or only looks for a byte.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures to read, not to count with"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use helve::dialect::{Dialect, EventKind, Mode, Scanner, ToolTable, WrittenCall};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::cpu;
use crate::report::Report;

const TRIES: usize = 9;
const KB: usize = 1000;
/// How long one try lasts, so that the clock's steps do not matter.
const TRY: Duration = Duration::from_millis(40);

const SENTENCE: &str = "The weather in Paris is mild today, and the forecast for tomorrow (Tuesday) looks much the same: sun, 21 degrees. ";

/// Adds the rows of the table.
pub fn measure(report: &mut Report) {
    prose(report);
    arguments(report);
    tagged(report);
    pieces(report);
    hard_pieces(report);
    small(report);
}

/// Bytes a second of some work on so many bytes, in MB/s.
fn speed(bytes: usize, mut work: impl FnMut()) -> f64 {
    let once = cpu::least(3, &mut work).max(Duration::from_nanos(100));
    let rounds = (TRY.as_secs_f64() / once.as_secs_f64()).ceil().clamp(1.0, 1e7) as u32;
    let time = cpu::least(TRIES, || (0..rounds).for_each(|_| work()));
    bytes as f64 * f64::from(rounds) / time.as_secs_f64() / 1e6
}

/// Reads a text whole. Says how many calls it had.
fn whole(reader: &Reader, text: &str) -> usize {
    in_pieces(reader, text, text.len())
}

/// What is made once for many messages.
struct Reader {
    dialect: Dialect,
    tools: Arc<ToolTable>,
}

impl Reader {
    fn new(dialect: &str) -> Self {
        Self { dialect: Dialect::named(dialect).expect("a dialect"), tools: Arc::new(ToolTable::unknown()) }
    }
}

fn in_pieces(reader: &Reader, text: &str, size: usize) -> usize {
    let mut calls = 0;
    let mut count = |kind: EventKind<'_>| {
        calls += usize::from(matches!(kind, EventKind::Call(_)));
        black_box(kind);
    };
    let mut scanner = Scanner::new(reader.dialect.clone(), Mode::Lenient, Arc::clone(&reader.tools));
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        scanner.push_str(&rest[..end], &mut |event| count(event.kind));
        rest = &rest[end..];
    }
    scanner.finish(&mut |event| count(event.kind));
    calls
}

fn prose(report: &mut Report) {
    let text = SENTENCE.repeat(1_000_000 / SENTENCE.len());
    let bare = speed(text.len(), || {
        black_box(memchr::memchr2(b'<', b'`', text.as_bytes()));
    });
    let [one, auto] = ["hermes", "auto"].map(|dialect| {
        let reader = Reader::new(dialect);
        speed(text.len(), || assert_eq!(whole(&reader, &text), 0))
    });
    report.speed("prose without calls, one dialect", one, "MB/s", ("memchr2", bare), Some(5000.0));
    report.speed("prose without calls, `auto`", auto, "MB/s", ("memchr2", bare), Some(1000.0));
}

/// About so many bytes that look like a program in a string.
fn code(bytes: usize) -> String {
    let mut text = String::new();
    let mut line = 0;
    while text.len() < bytes {
        line += 1;
        let _ = writeln!(text, "    let value_{line} = read(\"file_{line}\") + {line};");
    }
    text
}

/// About so many bytes of small values.
fn records(bytes: usize) -> Value {
    let one = |number: usize| json!({"id": number, "name": format!("record {number}"), "score": 0.5, "tags": ["a", "b"], "ok": true});
    Value::Array((0..bytes / 75).map(one).collect())
}

fn call(value: Value) -> Map<String, Value> {
    Map::from_iter([("content".to_owned(), value)])
}

fn written(dialect: &str, arguments: &Map<String, Value>) -> String {
    Dialect::write(dialect, &[WrittenCall { id: "call_1", name: "write_file", arguments }]).expect("a dialect")
}

fn arguments(report: &mut Report) {
    for (what, arguments) in [("one string of code", call(json!(code(100 * KB)))), ("small values", call(records(100 * KB)))] {
        let text = written("hermes", &arguments);
        let json = Value::Object(arguments).to_string();
        let value = speed(json.len(), || {
            black_box(serde_json::from_str::<Value>(&json).expect("JSON"));
        });
        let ignored = speed(json.len(), || {
            black_box(serde_json::from_str::<IgnoredAny>(&json).expect("JSON"));
        });
        let reader = Reader::new("hermes");
        let own = speed(text.len(), || assert_eq!(whole(&reader, &text), 1));
        let name = format!("100 KB of JSON arguments, {what}");
        report.speed(&name, own, "MB/s", ("serde_json::Value", value), Some(0.8 * value));
        report.speed(&format!("{name}, beside IgnoredAny"), own, "MB/s", ("serde_json IgnoredAny", ignored), None);
    }
}

fn tagged(report: &mut Report) {
    let arguments = call(json!(code(100 * KB)));
    for dialect in ["helve_xml", "qwen3_coder", "glm45", "anthropic", "minimax_m2", "deepseek_v32"] {
        let text = written(dialect, &arguments);
        let bare = speed(text.len(), || {
            black_box(memchr::memmem::find(text.as_bytes(), b"</no_such_tag>"));
        });
        let reader = Reader::new(dialect);
        let own = speed(text.len(), || assert_eq!(whole(&reader, &text), 1));
        report.speed(&format!("100 KB of text arguments, {dialect}"), own, "MB/s", ("memmem", bare), Some(500.0));
    }
}

fn pieces(report: &mut Report) {
    for dialect in ["hermes", "qwen3_coder", "helve_xml", "auto"] {
        let format = if dialect == "auto" { "hermes" } else { dialect };
        let texts = [100, 200].map(|size| written(format, &call(json!(code(size * KB)))));
        let reader = Reader::new(dialect);
        let [one, two] = [0, 1].map(|place| speed(texts[place].len(), || assert_eq!(in_pieces(&reader, &texts[place], 4), 1)));
        report.speed(&format!("4-character pieces, {dialect}, 100 KB"), one, "MB/s", ("", 0.0), Some(50.0));
        let ratio = (texts[1].len() as f64 / two) / (texts[0].len() as f64 / one);
        report.row(&format!("4-character pieces, {dialect}, 200 KB over 100 KB"), ratio, "times", ("", 0.0), Some(2.2));
    }
}

/// What costs most for each byte: prose, where every piece is decided at once, and values that are all small.
fn hard_pieces(report: &mut Report) {
    let prose = SENTENCE.repeat(100 * KB / SENTENCE.len());
    let reader = Reader::new("auto");
    let speed_of_prose = speed(prose.len(), || assert_eq!(in_pieces(&reader, &prose, 4), 0));
    report.speed("4-character pieces, auto, 100 KB of prose", speed_of_prose, "MB/s", ("", 0.0), Some(50.0));
    let text = written("hermes", &call(records(100 * KB)));
    let json = text.trim_start_matches("<tool_call>").trim_end_matches("</tool_call>");
    let value = speed(json.len(), || {
        black_box(serde_json::from_str::<Value>(json).expect("JSON"));
    });
    let reader = Reader::new("hermes");
    let own = speed(text.len(), || assert_eq!(in_pieces(&reader, &text, 4), 1));
    report.speed("4-character pieces, hermes, 100 KB of small values", own, "MB/s", ("serde_json::Value, whole", value), Some(50.0));
}

fn small(report: &mut Report) {
    let arguments = Map::from_iter([("city".to_owned(), json!("Paris")), ("days".to_owned(), json!(3))]);
    for dialect in ["hermes", "helve_json", "qwen3_coder", "auto"] {
        let text = written(if dialect == "auto" { "hermes" } else { dialect }, &arguments);
        let json = Value::Object(arguments.clone()).to_string();
        let value = speed(1, || {
            black_box(serde_json::from_str::<Value>(&json).expect("JSON"));
        });
        let reader = Reader::new(dialect);
        let own = speed(1, || assert_eq!(whole(&reader, &text), 1));
        report.speed(&format!("small calls, {dialect}"), own, "M/s", ("only their arguments, serde_json::Value", value), Some(1.0));
    }
}
