//! One face for all parsers: read a whole text, or a text in deltas.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_dialect::{Dialect, Mode, EventKind, Scanner, ToolTable};
use serde_json::{Map, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Hermes,
    Coder,
}

/// Where the results go: counted when timed, collected when checked.
pub trait Sink {
    fn text(&mut self, text: &str);
    fn name(&mut self, index: usize, name: &str);
    fn arguments(&mut self, index: usize, more: &str);
    fn whole(&mut self, name: &str, arguments: &Map<String, Value>);
}

#[derive(Default)]
pub struct Count(pub usize);
impl Sink for Count {
    fn text(&mut self, text: &str) {
        self.0 += text.len();
    }
    fn name(&mut self, index: usize, name: &str) {
        self.0 += index + name.len();
    }
    fn arguments(&mut self, index: usize, more: &str) {
        self.0 += index + more.len();
    }
    fn whole(&mut self, name: &str, arguments: &Map<String, Value>) {
        self.0 += name.len() + arguments.len();
    }
}

#[derive(Default)]
pub struct Collect {
    pub text: String,
    pub calls: Vec<(String, String)>,
    pub pieces: usize,
}
impl Collect {
    fn at(&mut self, index: usize) -> &mut (String, String) {
        while self.calls.len() <= index {
            self.calls.push(Default::default());
        }
        &mut self.calls[index]
    }
}
impl Sink for Collect {
    fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }
    fn name(&mut self, index: usize, name: &str) {
        self.at(index).0.push_str(name);
    }
    fn arguments(&mut self, index: usize, more: &str) {
        self.pieces += 1;
        self.at(index).1.push_str(more);
    }
    fn whole(&mut self, name: &str, arguments: &Map<String, Value>) {
        self.calls.push((name.to_owned(), serde_json::to_string(arguments).unwrap()));
    }
}

/// Stops a stream that takes too long.
pub struct Deadline {
    end: Instant,
    seen: usize,
    pub over: bool,
}
impl Deadline {
    pub fn after(seconds: u64) -> Self {
        Self { end: Instant::now() + Duration::from_secs(seconds), seen: 0, over: false }
    }
    /// Looked at for each delta; the clock is read for every 64th.
    pub fn passed(&mut self) -> bool {
        self.seen += 1;
        self.over = self.over || (self.seen % 64 == 0 && Instant::now() > self.end);
        self.over
    }
    pub fn seen(&self) -> usize {
        self.seen
    }
}

pub trait Peer {
    fn name(&self) -> &'static str;
    fn reads(&self, form: Form) -> bool;
    /// Whether only the small calls tell something about it.
    fn small_only(&self) -> bool {
        false
    }
    fn whole(&mut self, form: Form, text: &str, sink: &mut dyn Sink);
    /// Makes ready what is not timed, and gives what is.
    fn stream<'a>(&'a mut self, form: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a>;
}

// ---------------------------------------------------------------- helve-dialect

pub struct Helve {
    dialects: [Dialect; 2],
    tools: [Arc<ToolTable>; 2],
    mode: Mode,
    name: &'static str,
}
impl Helve {
    pub fn new(name: &'static str, dialects: [&str; 2], mode: Mode, tools: &[(String, Value)]) -> Self {
        Self {
            dialects: dialects.map(|name| Dialect::named(name).unwrap()),
            tools: [Arc::new(ToolTable::unknown()), Arc::new(ToolTable::new(tools.iter().cloned()))],
            mode,
            name,
        }
    }
    fn scanner(&self, form: Form) -> Scanner {
        let place = usize::from(form == Form::Coder);
        Scanner::new(self.dialects[place].clone(), self.mode, self.tools[place].clone())
    }
}
fn said(event: EventKind<'_>, sink: &mut dyn Sink) {
    match event {
        EventKind::Text(text) => sink.text(text),
        EventKind::Call(call) => sink.whole(&call.name, &call.arguments),
        EventKind::Malformed(malformed) => sink.text(&malformed.raw),
        other => {
            std::hint::black_box(&other);
        }
    }
}
impl Peer for Helve {
    fn name(&self) -> &'static str {
        self.name
    }
    fn reads(&self, _: Form) -> bool {
        true
    }
    fn whole(&mut self, form: Form, text: &str, sink: &mut dyn Sink) {
        let mut scanner = self.scanner(form);
        scanner.push_str(text, &mut |event| said(event.kind, sink));
        scanner.finish(&mut |event| said(event.kind, sink));
    }
    fn stream<'a>(&'a mut self, form: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a> {
        Box::new(move |sink, deadline| {
            let mut scanner = self.scanner(form);
            for delta in deltas {
                if deadline.passed() {
                    return;
                }
                scanner.push_str(delta, &mut |event| said(event.kind, sink));
            }
            scanner.finish(&mut |event| said(event.kind, sink));
        })
    }
}

// ---------------------------------------------------------------- tool-parser

#[cfg(feature = "smg")]
pub use smg::Smg;
#[cfg(feature = "smg")]
mod smg {
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
}

// ---------------------------------------------------------------- dynamo-parsers

#[cfg(feature = "dynamo")]
pub use dynamo::Dynamo;
#[cfg(feature = "dynamo")]
mod dynamo {
    use dynamo_parsers::tool_calling::jail::{Annotated, JailedStream};
    use dynamo_parsers::tool_calling::{ToolDefinition, detect_and_parse_tool_call};
    use dynamo_protocols::types::{
        ChatChoiceStream, ChatCompletionMessageContent, ChatCompletionStreamResponseDelta, CreateChatCompletionStreamResponse,
        FinishReason, Role,
    };
    use futures::{FutureExt, StreamExt};
    use std::sync::Mutex;

    use super::*;

    pub struct Dynamo {
        tools: Vec<ToolDefinition>,
    }
    impl Dynamo {
        pub fn new(tools: &[(String, Value)]) -> Self {
            let tool = |(name, schema): &(String, Value)| ToolDefinition { name: name.clone(), parameters: Some(schema.clone()), strict: None };
            Self { tools: tools.iter().map(tool).collect() }
        }
    }
    const fn key(form: Form) -> &'static str {
        match form {
            Form::Hermes => "hermes",
            Form::Coder => "qwen3_coder",
        }
    }
    fn chunk(content: Option<&str>) -> Annotated<CreateChatCompletionStreamResponse> {
        #[allow(deprecated)]
        let choice = ChatChoiceStream {
            index: 0,
            delta: ChatCompletionStreamResponseDelta {
                role: Some(Role::Assistant),
                content: content.map(|text| ChatCompletionMessageContent::Text(text.to_owned())),
                tool_calls: None,
                function_call: None,
                refusal: None,
                reasoning_content: None,
            },
            finish_reason: content.is_none().then_some(FinishReason::Stop),
            logprobs: None,
        };
        let response = CreateChatCompletionStreamResponse {
            id: "1".to_owned(),
            choices: vec![choice],
            created: 0,
            model: "m".to_owned(),
            system_fingerprint: None,
            object: "chat.completion.chunk".to_owned(),
            usage: None,
            service_tier: None,
        };
        Annotated { data: Some(response), id: None, event: None, comment: None, error: None }
    }
    impl Peer for Dynamo {
        fn name(&self) -> &'static str {
            "dynamo-parsers"
        }
        fn reads(&self, _: Form) -> bool {
            true
        }
        fn whole(&mut self, form: Form, text: &str, sink: &mut dyn Sink) {
            let (calls, rest) = detect_and_parse_tool_call(text, Some(key(form)), Some(&self.tools)).now_or_never().unwrap().unwrap();
            sink.text(rest.as_deref().unwrap_or_default());
            for (index, call) in calls.iter().enumerate() {
                sink.name(index, &call.function.name);
                sink.arguments(index, &call.function.arguments);
            }
        }
        fn stream<'a>(&'a mut self, form: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a> {
            let mut chunks: Vec<_> = deltas.iter().map(|delta| chunk(Some(delta))).collect();
            chunks.push(chunk(None));
            let tools = self.tools.clone();
            Box::new(move |sink, deadline| {
                let shared = Arc::new(Mutex::new(std::mem::replace(deadline, Deadline::after(60))));
                let watch = Arc::clone(&shared);
                let input = chunks.into_iter().take_while(move |_| !watch.lock().unwrap().passed());
                let jail = JailedStream::builder().tool_call_parser(key(form)).tool_definitions(tools).build();
                let output = jail.apply(futures::stream::iter(input));
                futures::executor::block_on(async {
                    futures::pin_mut!(output);
                    while let Some(item) = output.next().await {
                        let Some(choice) = item.data.as_ref().and_then(|data| data.choices.first()) else { continue };
                        if let Some(ChatCompletionMessageContent::Text(text)) = &choice.delta.content {
                            sink.text(text);
                        }
                        for call in choice.delta.tool_calls.iter().flatten() {
                            let Some(function) = &call.function else { continue };
                            if let Some(name) = &function.name {
                                sink.name(call.index as usize, name);
                            }
                            if let Some(arguments) = &function.arguments {
                                sink.arguments(call.index as usize, arguments);
                            }
                        }
                    }
                });
                std::mem::swap(deadline, &mut shared.lock().unwrap());
            })
        }
    }
}

// ---------------------------------------------------------------- dynamo-parsers-v2

#[cfg(feature = "dynamo2")]
pub use dynamo2::Dynamo2;
#[cfg(feature = "dynamo2")]
mod dynamo2 {
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
}

// ---------------------------------------------------------------- adk-model

#[cfg(feature = "adk")]
pub use adk::Adk;
#[cfg(feature = "adk")]
mod adk {
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
}
