//! Calls whose responses are far too large, or come after a flood.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::text;
use crate::writer::Writer;

/// Far more than a client should read.
const HUGE: usize = 100 << 20;
/// Just below the maximum message size.
const LARGE: usize = 15 << 20;

/// Number of 2 MB messages that exceed every buffer.
const FAT: usize = 50;

/// Handles a call if its tool is a flooding one.
pub fn answer(name: &str, id: &Value, params: &Value, writer: &mut Writer) -> io::Result<bool> {
    match name {
        "huge-line" => return writer.repeat(id, r#"{"content":[{"type":"text","text":""#, "x", HUGE, r#""}]}"#).map(|()| true),
        "huge-blocks" => return blocks(id, writer, HUGE).map(|()| true),
        "blocks" => return blocks(id, writer, LARGE).map(|()| true),
        "blocks-some" => return blocks(id, writer, 800_000).map(|()| true),
        "objects-some" => {
            let head = r#"{"content":[],"structuredContent":{"n":[0"#;
            return writer.repeat(id, head, r#",{"":0}"#, 49_000 * 7, "]}}").map(|()| true);
        }
        "numbers" => return writer.repeat(id, r#"{"content":[],"structuredContent":{"n":[0"#, ",0", LARGE, "]}}").map(|()| true),
        "large-text" => return writer.repeat(id, r#"{"content":[{"type":"text","text":""#, "x", LARGE, r#""}]}"#).map(|()| true),
        "progress" => {
            let token = &params["_meta"]["progressToken"];
            let progress = json!({"progressToken": token, "progress": 1, "total": 2, "message": "x".repeat(100_000)});
            let line = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}).to_string() + "\n";
            writer.fill(&line, HUGE)?;
        }
        "logs" => {
            let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n";
            writer.fill(line, line.len() * 300_000)?;
        }
        "fat-pings" => {
            for n in 0..FAT {
                let id = format!("{n}{}", "x".repeat(2 << 20));
                writer.say(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))?;
            }
        }
        "fat-news" => {
            // While the client lists the tools again, it does not process other notifications.
            writer.notify("notifications/tools/list_changed", &json!({}))?;
            for n in 0..FAT {
                writer.notify("notifications/resources/updated", &json!({"uri": format!("{n}{}", "x".repeat(2 << 20))}))?;
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
    writer.answer(id, &text("done")).map(|()| true)
}

/// A result of this many bytes, in the smallest possible blocks.
fn blocks(id: &Value, writer: &mut Writer, bytes: usize) -> io::Result<()> {
    let block = r#"{"type":"text","text":""}"#;
    writer.repeat(id, &format!(r#"{{"content":[{block}"#), &format!(",{block}"), bytes, "]}")
}
