//! Formats in which a call is a JSON object that contains the tool name.

use super::PLAIN;
use crate::format::{Format, Keys, Marks, Markup, Shape};

const ARGUMENTS: Keys = Keys::new("name", "arguments");
const PARAMETERS: Keys = Keys::new("name", "parameters");
const MISTRAL_THINKS: &[(&str, &str)] = &[("[THINK]", "[/THINK]")];
const COHERE_THINKS: &[(&str, &str)] = &[("<|START_THINKING|>", "<|END_THINKING|>")];
const COHERE_MARKUP: &[Markup] = &[
    Markup::Token("<|START_RESPONSE|>"),
    Markup::Token("<|END_RESPONSE|>"),
    Markup::Token("<|START_TEXT|>"),
    Markup::Token("<|END_TEXT|>"),
    Markup::Token("<|END_OF_TURN_TOKEN|>"),
];
const ANSWER: &[Markup] =
    &[Markup::Token("<answer>"), Markup::Token("</answer>"), Markup::Token("<｜hy_eos｜>"), Markup::Token("<｜hy_eos:opensource｜>")];
const LLAMA_TAIL: &[&str] = &["<|eom_id|>", "<|eot_id|>"];

pub(super) static ROWS: [Format; 25] = [
    Format {
        name: "helve_json",
        who: "Helve's prompted JSON",
        shape: Shape::Object(PARAMETERS),
        section: Marks::around(&["{\"tool_calls\":["], &["}"]),
        list: true,
        ..PLAIN
    },
    Format {
        name: "openai_json",
        who: "OpenAI's wire format written as text",
        shape: Shape::Object(Keys { wrapped: true, string_arguments: true, ..ARGUMENTS }),
        section: Marks::around(&["{\"tool_calls\":["], &["}"]),
        list: true,
        ..PLAIN
    },
    Format {
        name: "hermes",
        who: "Hermes 2/3, Qwen 2.5/3, Bielik, Reka, ERNIE 4.5, SmolLM3",
        section: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        markup: &[Markup::Token("<response>"), Markup::Token("</response>")],
        ..PLAIN
    },
    Format {
        name: "granite4",
        who: "Granite 4",
        section: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Object(Keys { string_arguments: true, ..ARGUMENTS }),
        ..PLAIN
    },
    Format { name: "granite31", who: "Granite 3.1+", section: Marks::maybe(&["<tool_call>"], &["</tool_call>"]), list: true, ..PLAIN },
    Format {
        name: "longcat",
        who: "LongCat",
        section: Marks::around(&["<longcat_tool_call>"], &["</longcat_tool_call>"]),
        thinks: &[("<longcat_think>", "</longcat_think>")],
        ..PLAIN
    },
    Format {
        name: "llama3_python_tag",
        who: "Llama 3.1/3.2",
        section: Marks::maybe(&["<|python_tag|>"], LLAMA_TAIL),
        shape: Shape::Object(PARAMETERS),
        ..PLAIN
    },
    Format {
        name: "llama3_json",
        who: "Llama 3.1/3.2/4",
        section: Marks::maybe(&["<|python_tag|>"], LLAMA_TAIL),
        shape: Shape::Object(PARAMETERS),
        bare: true,
        ..PLAIN
    },
    Format {
        name: "mistral_v3",
        who: "Mistral 7B v0.3, Nemo, Mixtral, Ministral 8B",
        section: Marks::maybe(&["[TOOL_CALLS]"], &["[/TOOL_CALLS]"]),
        list: true,
        thinks: MISTRAL_THINKS,
        markup: &[Markup::Token("</s>")],
        ..PLAIN
    },
    Format { name: "jamba", who: "Jamba, Apriel", section: Marks::around(&["<tool_calls>"], &["</tool_calls>"]), list: true, ..PLAIN },
    Format {
        name: "hunyuan_a13b",
        who: "Hunyuan A13B",
        markup: ANSWER,
        section: Marks::around(&["<tool_calls>"], &["</tool_calls>"]),
        list: true,
        ..PLAIN
    },
    Format { name: "minimax_m1", who: "MiniMax M1", section: Marks::around(&["<tool_calls>"], &["</tool_calls>"]), ..PLAIN },
    Format { name: "dots", who: "dots, with JSON", section: Marks::around(&["<dots_function_call>"], &["</dots_function_call>"]), ..PLAIN },
    Format { name: "granite3", who: "Granite 3.0", section: Marks::after(&["<|tool_call|>"]), list: true, ..PLAIN },
    Format { name: "granite20b", who: "Granite 20B", section: Marks::after(&["<function_call>"]), ..PLAIN },
    Format { name: "phi4mini", who: "Phi-4-mini, FireFunction", section: Marks::after(&["functools["]), list: true, ..PLAIN },
    Format {
        name: "command_r",
        who: "Command R",
        section: Marks::around(&["Action:\n```json\n", "Action: ```json\n", "Action:```json\n"], &["```"]),
        shape: Shape::Object(Keys::new("tool_name", "parameters")),
        list: true,
        ..PLAIN
    },
    Format {
        name: "cohere_action",
        who: "Command R7B, Command A",
        section: Marks::around(&["<|START_ACTION|>"], &["<|END_ACTION|>"]),
        shape: Shape::Object(Keys { id: "tool_call_id", ..Keys::new("tool_name", "parameters") }),
        list: true,
        thinks: COHERE_THINKS,
        markup: COHERE_MARKUP,
        ..PLAIN
    },
    Format { name: "nemotron_v2", who: "Nemotron Nano v2", section: Marks::around(&["<TOOLCALL>"], &["</TOOLCALL>"]), list: true, ..PLAIN },
    Format {
        name: "internlm2",
        who: "InternLM 2/2.5/3",
        section: Marks::around(&["<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"], &["<|action_end|>"]),
        shape: Shape::Object(PARAMETERS),
        ..PLAIN
    },
    Format {
        name: "xlam",
        who: "xLAM",
        section: Marks::maybe(&["[TOOL_CALLS]", "<tool_call>", "{\"tool_calls\":["], &["[/TOOL_CALLS]", "</tool_call>"]),
        list: true,
        bare: true,
        ..PLAIN
    },
    Format {
        name: "sarashina",
        who: "Sarashina 2.2",
        section: Marks::after(&["<|tool_calls|>"]),
        shape: Shape::Object(Keys { python: true, ..ARGUMENTS }),
        list: true,
        bare: true,
        ..PLAIN
    },
    Format {
        name: "apertus",
        who: "Apertus",
        section: Marks::around(&["<|tools_prefix|>"], &["<|tools_suffix|>"]),
        shape: Shape::Object(Keys { by_key: true, ..ARGUMENTS }),
        list: true,
        thinks: &[("<|inner_prefix|>", "<|inner_suffix|>")],
        markup: &[Markup::Token("<|assistant_end|>")],
        ..PLAIN
    },
    Format {
        name: "gigachat3",
        who: "GigaChat 3",
        section: Marks::after(&["function call<|role_sep|>\n", "function call<|role_sep|>", "<|function_call|>"]),
        markup: &[Markup::Token("<|message_sep|>"), Markup::Token("<|role_sep|>"), Markup::Token("</s>")],
        ..PLAIN
    },
    Format {
        name: "inkling",
        who: "Inkling",
        section: Marks::around(&["<|message_model|><|content_invoke_tool_json|>", "<|content_invoke_tool_json|>"], &["<|end_message|>"]),
        shape: Shape::Object(Keys::new("name", "args")),
        thinks: &[("<|content_thinking|>", "<|end_message|>")],
        markup: &[
            Markup::Upto("<|message_model|>", "<|content_"),
            Markup::Token("<|content_text|>"),
            Markup::Token("<|end_message|>"),
            Markup::Token("<|content_model_end_sampling|>"),
            Markup::Token("<|model_trigger_generation|>"),
        ],
        ..PLAIN
    },
];
