//! Fixed inputs. All ASCII, made without randomness from outside.

use serde_json::{Value, json};

/// A small generator, so that the text is the same everywhere.
struct Dice(u64);
impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

const WORDS: [&str; 48] = [
    "the", "of", "and", "a", "to", "in", "is", "that", "it", "was", "for", "on", "are", "with", "as", "they", "at",
    "this", "from", "weather", "because", "between", "answer", "question", "temperature", "tomorrow", "morning",
    "reading", "through", "another", "without", "station", "forecast", "window", "people", "should", "little",
    "measure", "somewhere", "parser", "stream", "model", "writes", "calls", "city", "river", "evening", "important",
];

/// English-like prose of about `size` bytes. With `code`, every fourth paragraph is code with `<`, `{` and `[`.
pub fn prose(size: usize, code: bool) -> String {
    let mut dice = Dice(7);
    let mut text = String::with_capacity(size + 200);
    let mut paragraph = 0;
    while text.len() < size {
        paragraph += 1;
        if code && paragraph % 4 == 0 {
            text.push_str("```rust\nfn read<T: Into<Vec<u8>>>(from: &[T], n: usize) -> Option<&T> {\n    if n < from.len() { from.get(n) } else { None }\n}\n```\n<div class=\"note\"><b>See</b> {\"a\": [1, 2, 3]}</div>\n\n");
            continue;
        }
        for _ in 0..4 + dice.below(4) {
            for place in 0..8 + dice.below(12) {
                let word = WORDS[dice.below(WORDS.len())];
                if place == 0 {
                    text.push_str(&word[..1].to_uppercase());
                    text.push_str(&word[1..]);
                } else {
                    text.push_str(if dice.below(12) == 0 { ", " } else { " " });
                    text.push_str(word);
                }
            }
            text.push_str(". ");
        }
        text.push_str("\n\n");
    }
    text.truncate(size);
    text
}

/// Code-like content: lines of 40 characters, each with two quotes, so that JSON writes `\"` and `\n`.
fn code(json_size: usize) -> String {
    let mut text = String::new();
    let mut line = 0;
    // 40 characters and a newline are 44 bytes as JSON.
    while line * 44 + 44 <= json_size {
        let one = format!("    let line_{line:06} = \"value {:06}\"; //", line * 7 % 999_983);
        assert_eq!(one.len(), 40, "{one}");
        text.push_str(&one);
        text.push('\n');
        line += 1;
    }
    text
}

/// Arguments of one long string: about `size` bytes as JSON.
pub fn long_string(size: usize) -> Value {
    json!({"path": "src/main.rs", "content": code(size - 40)})
}

/// Arguments of many small values: about `size` bytes as JSON.
pub fn many_values(size: usize) -> Value {
    let mut items = Vec::new();
    let mut written = 0;
    while written + 80 < size {
        let n = items.len();
        let item = json!({"id": n, "name": format!("item {n}"), "ok": n % 3 == 0, "price": n as f64 + 0.25, "tags": ["a", "b"], "none": null});
        written += item.to_string().len() + 1;
        items.push(item);
    }
    json!({"path": "items", "items": items})
}

pub fn small() -> (String, Value) {
    ("get_weather".into(), json!({"city": "Paris", "days": 3}))
}

pub const SMALL: &str = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": 3}}\n</tool_call>";

pub fn hermes(name: &str, arguments: &Value) -> String {
    format!("<tool_call>\n{}\n</tool_call>", body(name, arguments))
}

pub fn body(name: &str, arguments: &Value) -> String {
    format!("{{\"name\": \"{name}\", \"arguments\": {arguments}}}")
}

/// The same in Qwen3-Coder's format.
pub fn coder(name: &str, arguments: &Value) -> String {
    let mut text = format!("<tool_call>\n<function={name}>\n");
    for (key, value) in arguments.as_object().unwrap() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!("<parameter={key}>\n{value}\n</parameter>\n"));
    }
    text.push_str("</function>\n</tool_call>");
    text
}

/// The tools, as `(name, schema)`.
pub fn tools() -> Vec<(String, Value)> {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    vec![
        ("get_weather".into(), object(json!({"city": {"type": "string"}, "days": {"type": "integer"}}))),
        (
            "write_file".into(),
            object(json!({"path": {"type": "string"}, "content": {"type": "string"}, "items": {"type": "array"}})),
        ),
    ]
}
