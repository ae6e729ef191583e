//! The second generation of parsers of dynamo.

use dynamo_parsers_v2::{Tool, ToolParseResult, create_tool_parser_for_family};

use super::*;

pub struct Dynamo2 {
    tools: Vec<Tool>,
}
impl Dynamo2 {
    pub fn new(tools: &[(String, Value)]) -> Self {
        let tool = |(name, schema): &(String, Value)| Tool { name: name.clone(), description: None, parameters: schema.clone(), strict: None };
        Self { tools: tools.iter().map(tool).collect() }
    }
}
fn take(result: ToolParseResult, sink: &mut dyn Sink) {
    sink.text(&result.normal_text);
    for call in result.calls {
        if let Some(name) = &call.name {
            sink.name(call.tool_index, name);
        }
        if !call.arguments.is_empty() {
            sink.arguments(call.tool_index, &call.arguments);
        }
    }
}
impl Peer for Dynamo2 {
    fn name(&self) -> &'static str {
        "dynamo-parsers-v2"
    }
    fn reads(&self, form: Form) -> bool {
        form == Form::Coder
    }
    fn whole(&mut self, _: Form, text: &str, sink: &mut dyn Sink) {
        let mut parser = create_tool_parser_for_family("qwen3_coder", &self.tools).unwrap();
        take(parser.parse_complete(text).unwrap(), sink);
    }
    fn stream<'a>(&'a mut self, _: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a> {
        Box::new(move |sink, deadline| {
            let mut parser = create_tool_parser_for_family("qwen3_coder", &self.tools).unwrap();
            for delta in deltas {
                if deadline.passed() {
                    return;
                }
                take(parser.push(delta).unwrap(), sink);
            }
            take(parser.finish().unwrap(), sink);
        })
    }
}
