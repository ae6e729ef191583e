//! Calls that are answered with far too much, or after it.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::mouth::Mouth;
use crate::text;

/// As much as nobody should have to read.
const HUGE: usize = 100 << 20;
/// Just below the longest message that is taken.
const LARGE: usize = 15 << 20;

/// How many messages of two megabytes are more than may be kept.
const FAT: usize = 50;

/// Answers a call, if its tool is one that floods.
pub fn answer(name: &str, id: &Value, params: &Value, mouth: &mut Mouth) -> io::Result<bool> {
    match name {
        "huge-line" => return mouth.repeat(id, r#"{"content":[{"type":"text","text":""#, "x", HUGE, r#""}]}"#).map(|()| true),
        "huge-blocks" => return blocks(id, mouth, HUGE).map(|()| true),
        "blocks" => return blocks(id, mouth, LARGE).map(|()| true),
        "blocks-some" => return blocks(id, mouth, 800_000).map(|()| true),
        "objects-some" => {
            let head = r#"{"content":[],"structuredContent":{"n":[0"#;
            return mouth.repeat(id, head, r#",{"":0}"#, 49_000 * 7, "]}}").map(|()| true);
        }
        "numbers" => return mouth.repeat(id, r#"{"content":[],"structuredContent":{"n":[0"#, ",0", LARGE, "]}}").map(|()| true),
        "large-text" => return mouth.repeat(id, r#"{"content":[{"type":"text","text":""#, "x", LARGE, r#""}]}"#).map(|()| true),
        "progress" => {
            let token = &params["_meta"]["progressToken"];
            let progress = json!({"progressToken": token, "progress": 1, "total": 2, "message": "x".repeat(100_000)});
            let line = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}).to_string() + "\n";
            mouth.fill(&line, HUGE)?;
        }
        "logs" => {
            let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n";
            mouth.fill(line, line.len() * 300_000)?;
        }
        "fat-pings" => {
            for n in 0..FAT {
                let id = format!("{n}{}", "x".repeat(2 << 20));
                mouth.say(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))?;
            }
        }
        "fat-news" => {
            // While the list is asked for again, nobody looks after what else has changed.
            mouth.notify("notifications/tools/list_changed", &json!({}))?;
            for n in 0..FAT {
                mouth.notify("notifications/resources/updated", &json!({"uri": format!("{n}{}", "x".repeat(2 << 20))}))?;
            }
        }
        "whispers" => {
            let piece = "\u{1b}[31mnoise\u{202e} ".repeat(10_000);
            for _ in 0..HUGE / piece.len() {
                io::stderr().write_all(piece.as_bytes())?;
            }
        }
        _ => return Ok(false),
    }
    mouth.answer(id, &text("done")).map(|()| true)
}

/// A result of so many bytes, in blocks that are as small as they can be.
fn blocks(id: &Value, mouth: &mut Mouth, bytes: usize) -> io::Result<()> {
    let block = r#"{"type":"text","text":""}"#;
    mouth.repeat(id, &format!(r#"{{"content":[{block}"#), &format!(",{block}"), bytes, "]}")
}
