//! An MCP server over stdio that misbehaves in the ways that its arguments name. It shares no code with Helve's client.
//!
//! `hostile-mcp MODE [ARGUMENT] [--modern]`: most modes concern the handshake or the tool list. With `good`, the name of the called tool says
//! what goes wrong.

mod call;
mod end;
mod flood;
mod greeting;
mod list;
mod writer;

use std::io::{self, BufRead};
use std::process::ExitCode;

use serde_json::{Value, json};

use writer::Writer;

/// The command line.
struct Arguments {
    mode: String,
    argument: String,
    modern: bool,
}

fn main() -> ExitCode {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let mut words = words.into_iter();
    let mut next = || words.next().unwrap_or_default();
    let arguments = Arguments { mode: next(), argument: next(), modern: flags.iter().any(|flag| flag == "--modern") };
    // A client that closes the connection is no error.
    let _ = if greeting::is_none(&arguments.mode) { greeting::refuse(&arguments.mode, &mut Writer::new()) } else { serve(&arguments) };
    end::leave(&arguments.mode)
}

/// Handles requests one after the other until the end of input.
fn serve(arguments: &Arguments) -> io::Result<()> {
    let mut writer = Writer::new();
    let mut list = list::List::new(&arguments.mode, &arguments.argument);
    let mut first = true;
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        let was_first = std::mem::take(&mut first);
        match method {
            "server/discover" if arguments.mode == "busy" && was_first => sleep_forever(),
            "server/discover" if arguments.modern => writer.answer(id, &greeting::discovered(&arguments.mode))?,
            "initialize" if !arguments.modern => {
                greeting::initialize(&arguments.mode, id, &mut writer)?;
                if arguments.mode == "leaves-at-once" {
                    return Ok(());
                }
            }
            "tools/list" => list.answer(id, &message["params"], &mut writer)?,
            "tools/call" => call::answer(id, &message["params"], &mut writer, &mut lines)?,
            "subscriptions/listen" => {}
            _ => writer.refuse(id, -32601, "there is no such method")?,
        }
    }
    Ok(())
}

fn sleep_forever() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
}

/// A tool that accepts any arguments.
fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "additionalProperties": true}})
}

/// A text result.
fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
