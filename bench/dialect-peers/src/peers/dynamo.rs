//! The parsers of dynamo.

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
