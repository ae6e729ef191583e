//! Finds tool calls in streamed text. It needs no API key and no server: the response comes from a list.
//!
//! ```sh
//! cargo run --example calls_in_text
//! ```

use std::sync::Arc;

use helve::dialect::{Dialect, Event, EventKind, Mode, Repair, Scanner, ToolTable};
use serde_json::json;

/// The chunks of a response: reasoning, text, a call with a trailing comma, and a call that is cut off.
const CHUNKS: [&str; 9] = [
    "<think>The user wants the wea",
    "ther.</think>Let me look",
    " that up.\n<tool_",
    "call>\n{\"name\": \"get_weather\", \"arg",
    "uments\": {\"city\": \"Lyon\", \"days\": \"2\",}}",
    "\n</tool_call>\n<tool_call>\n{\"name\": \"get_wea",
    "ther\", \"arguments\": {\"city\": ",
    "\"Saint-",
    "Éti",
];

fn main() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    let tools = Arc::new(ToolTable::new([("get_weather", schema)]));
    let mut scanner = Scanner::new(Dialect::auto(), Mode::Lenient, tools);
    for chunk in CHUNKS {
        scanner.push_str(chunk, &mut show);
    }
    scanner.finish(&mut show);
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn show(event: Event<'_>) {
    match event.kind {
        EventKind::Text(text) => println!("text       {text:?}"),
        EventKind::Reasoning(text) => println!("reasoning  {text:?}"),
        EventKind::Call(call) => {
            let repairs: Vec<_> = call.repairs.iter().map(Repair::as_str).collect();
            println!("call       {} {} (repaired: {})", call.name, json!(call.arguments), repairs.join(", "));
        }
        EventKind::Malformed(malformed) => println!("malformed  {}: {}", malformed.kind, malformed.error),
        EventKind::CallOpened { .. } | EventKind::ArgsDelta { .. } | EventKind::Markup(_) => {}
    }
}
