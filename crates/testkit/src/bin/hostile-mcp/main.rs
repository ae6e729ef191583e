//! An MCP server that misbehaves over stdio, in ways that its arguments name. It shares no code with Helve's client.
//!
//! `hostile-mcp MODE [ARGUMENT] [--modern]`: most modes are about the greeting or the list of tools. With `good`, the name of the tool
//! that is called says what goes wrong.

mod call;
mod end;
mod flood;
mod greeting;
mod list;
mod mouth;

use std::io::{self, BufRead};
use std::process::ExitCode;

use serde_json::{Value, json};

use mouth::Mouth;

/// What was asked for on the command line.
struct Wanted {
    mode: String,
    argument: String,
    modern: bool,
}

fn main() -> ExitCode {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let mut words = words.into_iter();
    let mut next = || words.next().unwrap_or_default();
    let wanted = Wanted { mode: next(), argument: next(), modern: flags.iter().any(|flag| flag == "--modern") };
    // A client that hangs up is no reason for words.
    let _ = if greeting::is_none(&wanted.mode) { greeting::refuse(&wanted.mode, &mut Mouth::new()) } else { serve(&wanted) };
    end::leave(&wanted.mode)
}

/// Answers requests, one after the other, until nobody asks.
fn serve(wanted: &Wanted) -> io::Result<()> {
    let mut mouth = Mouth::new();
    let mut list = list::List::new(&wanted.mode, &wanted.argument);
    let mut first = true;
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        let was_first = std::mem::take(&mut first);
        match method {
            "server/discover" if wanted.mode == "busy" && was_first => sleep_for_ever(),
            "server/discover" if wanted.modern => mouth.answer(id, &greeting::discovered(&wanted.mode))?,
            "initialize" if !wanted.modern => {
                greeting::initialize(&wanted.mode, id, &mut mouth)?;
                if wanted.mode == "leaves-at-once" {
                    return Ok(());
                }
            }
            "tools/list" => list.answer(id, &message["params"], &mut mouth)?,
            "tools/call" => call::answer(id, &message["params"], &mut mouth, &mut lines)?,
            "subscriptions/listen" => {}
            _ => mouth.refuse(id, -32601, "there is no such method")?,
        }
    }
    Ok(())
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
}

/// A tool that takes anything.
fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "additionalProperties": true}})
}

/// A result that is only text.
fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
