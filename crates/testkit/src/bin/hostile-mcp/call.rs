//! Calls that go wrong, each in the way that its tool name says.

use std::io::{self, Lines, StdinLock};

use serde_json::{Value, json};

use crate::writer::Writer;
use crate::{end, flood, text, tool};

const QUESTIONS: [&str; 4] = ["sampling/createMessage", "roots/list", "tools/list", "ping"];

const TOOLS: [&str; 37] = [
    "echo",
    "mark",
    "stuck",
    "huge-line",
    "huge-blocks",
    "blocks",
    "numbers",
    "large-text",
    "progress",
    "logs",
    "wrong-id",
    "twice",
    "early",
    "text-id",
    "asks",
    "asks-some",
    "asks-people",
    "blocks-some",
    "objects-some",
    "pings",
    "fat-pings",
    "fat-news",
    "dies",
    "scatters",
    "pieces",
    "whispers",
    "nothing",
    "kinds",
    "no-object",
    "no-list",
    "strange-error",
    "huge-error",
    "garbled",
    "deep",
    "ansi",
    "result-type",
    "half",
];

/// All of them; one declares an output schema.
pub fn tools() -> Vec<Value> {
    let promise = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let broken = json!({"name": "promise", "inputSchema": {"type": "object"}, "outputSchema": promise});
    TOOLS.iter().map(|name| tool(name, "")).chain([broken]).collect()
}

/// Handles a call, with or without a response. A table with an arm for each misbehaviour, so it is long.
pub fn answer(id: &Value, params: &Value, writer: &mut Writer, lines: &mut Lines<StdinLock<'static>>) -> io::Result<()> {
    let name = params["name"].as_str().unwrap_or_default();
    if flood::answer(name, id, params, writer)? {
        return Ok(());
    }
    let number = id.as_i64().unwrap_or(0);
    let result = match name {
        "mark" => text(&std::env::var("HELVE_SERVER_ID").unwrap_or_default()),
        "stuck" => return Ok(()),
        "wrong-id" => {
            writer.answer(&json!(number + 1000), &text("for nobody"))?;
            writer.answer(&json!(-number), &text("for nobody"))?;
            writer.answer(&json!(1e300), &text("for nobody"))?;
            text("right")
        }
        "twice" => {
            writer.answer(id, &text("first"))?;
            writer.answer(id, &text("second"))?;
            return writer.refuse(id, -32000, "third");
        }
        "early" => {
            writer.answer(&json!(number + 1), &text("too early"))?;
            text("on time")
        }
        "text-id" => {
            writer.answer(&json!(number.to_string()), &text("a text"))?;
            writer.answer(&Value::Null, &text("nothing"))?;
            text("a number")
        }
        "asks" => {
            ask(writer, 1000, &QUESTIONS)?;
            text("done")
        }
        "asks-some" => {
            ask(writer, QUESTIONS.len(), &QUESTIONS)?;
            json!({"content": [], "structuredContent": {"heard": hear(QUESTIONS.len(), lines)?}})
        }
        "asks-people" => {
            ask(writer, 1000, &["elicitation/create"])?;
            text("done")
        }
        "pings" => {
            ask(writer, 10_000, &["ping"])?;
            text("done")
        }
        "dies" => std::process::exit(7),
        "scatters" => {
            end::scatter();
            text("done")
        }
        "pieces" => {
            let line = json!({"jsonrpc": "2.0", "id": id, "result": text("in pieces")}).to_string() + "\n";
            return line.bytes().try_for_each(|byte| writer.bytes(&[byte]));
        }
        "nothing" => json!({"isError": true}),
        "kinds" => {
            json!({"content": [{"type": "\u{1b}[31msmell\u{202e}"}, 7, null, {"type": {"a": 1}}, {"type": "text"}, {"type": "image"}]})
        }
        "no-object" => json!("a text"),
        "no-list" => json!({"content": "a text"}),
        "strange-error" => return writer.refuse(id, i64::MIN, "\u{1b}[31mno\u{202e} way\u{e0041}"),
        "huge-error" => return writer.refuse(id, -32602, &"\u{1b}".repeat(2 << 20)),
        "garbled" => return writer.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[}}}}"#)),
        "deep" => return writer.repeat(id, r#"{"content":[],"structuredContent":"#, "[", 10_000, &"]".repeat(10_000)),
        "ansi" => text("\u{1b}[2J\u{202e}\u{e0041}hidden\u{0}"),
        "result-type" => json!({"resultType": "\u{1b}[31mmystery", "content": []}),
        "promise" => json!({"content": [{"type": "text", "text": "{}"}], "structuredContent": {"n": "\u{1b}[31mnone"}}),
        "half" => {
            writer.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#).as_bytes())?;
            std::process::exit(0);
        }
        "change" => {
            writer.notify("notifications/tools/list_changed", &json!({}))?;
            text("changed")
        }
        _ => json!({"content": [{"type": "text", "text": params["arguments"].to_string()}], "structuredContent": params["arguments"]}),
    };
    writer.answer(id, &result)
}

/// Sends many requests at once.
fn ask(writer: &mut Writer, count: usize, methods: &[&str]) -> io::Result<()> {
    (0..count).try_for_each(|n| {
        let method = methods[n % methods.len()];
        writer.say(&json!({"jsonrpc": "2.0", "id": format!("ask-{n}"), "method": method, "params": {"message": "?"}}))
    })
}

/// A summary of each response: its result or its error code.
fn hear(count: usize, lines: &mut Lines<StdinLock<'static>>) -> io::Result<Value> {
    let mut heard = Vec::new();
    for line in lines.take(count) {
        let message: Value = serde_json::from_str(&line?)?;
        heard.push(message.get("result").or(message["error"].get("code")).cloned().unwrap_or_default());
    }
    Ok(Value::Array(heard))
}
