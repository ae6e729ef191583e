//! Ways to fail the handshake.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use crate::writer::Writer;

/// Returns whether a mode never reaches the handshake.
pub fn is_none(mode: &str) -> bool {
    ["silent", "deaf", "garbage", "blank", "endless-line", "dies"].contains(&mode)
}

/// Does anything but the handshake.
pub fn refuse(mode: &str, writer: &mut Writer) -> io::Result<()> {
    match mode {
        "silent" => io::stdin().lock().lines().try_for_each(|line| line.map(drop)),
        "deaf" => crate::sleep_forever(),
        "garbage" => loop {
            writer.line("\u{1b}[31mListening\u{202e} on port 80; got {\"id\":1,\"method\":\"server/discover\"}")?;
        },
        "blank" => loop {
            writer.fill("\n", 1 << 20)?;
        },
        "endless-line" => loop {
            writer.fill("x", 1 << 20)?;
        },
        _ => io::stderr().write_all("\u{1b}[2Jno licence\u{202e} found\n".as_bytes()),
    }
}

/// The response to `initialize`.
pub fn initialize(mode: &str, id: &Value, writer: &mut Writer) -> io::Result<()> {
    let version = if mode == "version" { "\u{1b}[31m9999-99-99" } else { "2025-11-25" };
    match mode {
        "mute" => Ok(()),
        "refuses" => writer.refuse(id, -32000, &"\u{1b}[31mgo away\u{202e} ".repeat(50_000)),
        "refuses-version" => writer.refuse(id, -32022, &"\u{1b}[31mtoo old\u{202e} ".repeat(50_000)),
        _ => writer.answer(id, &json!({"protocolVersion": version, "capabilities": capabilities(mode), "serverInfo": info()})),
    }
}

/// The response to `server/discover`.
pub fn discovered(mode: &str) -> Value {
    json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities(mode),
        "serverInfo": info(),
        "resultType": "complete",
    })
}

fn info() -> Value {
    json!({"name": "\u{1b}[31mhostile\u{202e}", "version": "1"})
}

fn capabilities(mode: &str) -> Value {
    match mode {
        "capabilities-list" => json!(["tools"]),
        "capabilities-null" => Value::Null,
        "capabilities-text" => json!({"tools": "yes", "logging": 7}),
        _ => json!({"tools": {"listChanged": true}}),
    }
}
