//! The parser of adk.

use std::collections::HashSet;

use adk_core::Part;
use adk_model::tool_call_parser::{BufferAction, ToolCallBuffer, parse_declared_tool_calls};

use super::*;

pub struct Adk {
    tools: HashSet<String>,
}
impl Adk {
    pub fn new(tools: &[(String, Value)]) -> Self {
        Self { tools: tools.iter().map(|(name, _)| name.clone()).collect() }
    }
}
fn take(parts: &[Part], sink: &mut dyn Sink) {
    for part in parts {
        match part {
            Part::Text { text } => sink.text(text),
            Part::FunctionCall { name, args, .. } => match args.as_object() {
                Some(map) => sink.whole(name, map),
                None => sink.whole(name, &Map::new()),
            },
            _ => {}
        }
    }
}
impl Peer for Adk {
    fn name(&self) -> &'static str {
        "adk-model"
    }
    fn reads(&self, form: Form) -> bool {
        form == Form::Hermes
    }
    fn whole(&mut self, _: Form, text: &str, sink: &mut dyn Sink) {
        match parse_declared_tool_calls(text, &self.tools) {
            Some(parts) => take(&parts, sink),
            None => sink.text(text),
        }
    }
    fn stream<'a>(&'a mut self, _: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a> {
        let tools = self.tools.clone();
        Box::new(move |sink, deadline| {
            let mut buffer = ToolCallBuffer::for_declared_tools(tools);
            for delta in deltas {
                if deadline.passed() {
                    return;
                }
                if let BufferAction::Emit(parts) = buffer.push(delta) {
                    take(&parts, sink);
                }
            }
            take(&buffer.flush(), sink);
        })
    }
}
