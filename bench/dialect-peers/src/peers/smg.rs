//! The crate tool-parser.

use futures::FutureExt;
use openai_protocol::common::Tool;
use tool_parser::ToolParser;
use tool_parser::parsers::{QwenParser, QwenXmlParser};

use super::*;

pub struct Smg {
    hermes: QwenParser,
    coder: QwenXmlParser,
    tools: Vec<Tool>,
    fresh: bool,
}
impl Smg {
    /// `fresh` makes a parser for every message instead of using one again.
    pub fn new(tools: &[(String, Value)], fresh: bool) -> Self {
        let tools = tools
            .iter()
            .map(|(name, schema)| {
                serde_json::from_value(serde_json::json!({"type": "function", "function": {"name": name, "parameters": schema}})).unwrap()
            })
            .collect();
        Self { hermes: QwenParser::new(), coder: QwenXmlParser::new(), tools, fresh }
    }
    fn parser(&mut self, form: Form) -> &mut dyn ToolParser {
        if self.fresh {
            match form {
                Form::Hermes => self.hermes = QwenParser::new(),
                Form::Coder => self.coder = QwenXmlParser::new(),
            }
        }
        match form {
            Form::Hermes => &mut self.hermes,
            Form::Coder => &mut self.coder,
        }
    }
}
impl Peer for Smg {
    fn name(&self) -> &'static str {
        if self.fresh { "tool-parser, new parser each time" } else { "tool-parser" }
    }
    fn reads(&self, _: Form) -> bool {
        true
    }
    fn small_only(&self) -> bool {
        self.fresh
    }
    fn whole(&mut self, form: Form, text: &str, sink: &mut dyn Sink) {
        let tools = std::mem::take(&mut self.tools);
        let parser = self.parser(form);
        let (rest, calls) = parser.parse_complete_with_tools(text, &tools).now_or_never().unwrap().unwrap();
        sink.text(&rest);
        for (index, call) in calls.iter().enumerate() {
            sink.name(index, &call.function.name);
            sink.arguments(index, &call.function.arguments);
        }
        self.tools = tools;
    }
    fn stream<'a>(&'a mut self, form: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a> {
        Box::new(move |sink, deadline| {
            let tools = std::mem::take(&mut self.tools);
            let parser = self.parser(form);
            parser.reset();
            let take = |items: Vec<tool_parser::types::ToolCallItem>, sink: &mut dyn Sink| {
                for item in items {
                    if let Some(name) = &item.name {
                        sink.name(item.tool_index, name);
                    }
                    if !item.parameters.is_empty() {
                        sink.arguments(item.tool_index, &item.parameters);
                    }
                }
            };
            for delta in deltas {
                if deadline.passed() {
                    break;
                }
                let result = parser.parse_incremental(delta, &tools).now_or_never().unwrap().unwrap();
                sink.text(&result.normal_text);
                take(result.calls, sink);
            }
            if !deadline.over {
                take(parser.get_unstreamed_tool_args().unwrap_or_default(), sink);
                sink.text(&parser.take_unstreamed_normal_text());
            }
            parser.reset();
            self.tools = tools;
        })
    }
}
