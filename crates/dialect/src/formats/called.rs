//! Formats in which the tool name comes before the arguments: headed JSON, Python calls, braces and channels.

use super::PLAIN;
use crate::format::{Format, Marks, Markup, Shape};

const DEEPSEEK_SECTION: Marks = Marks::around(
    &["<｜tool▁calls▁begin｜>", "<｜tool_calls_begin｜>", "<｜tool calls begin｜>"],
    &["<｜tool▁calls▁end｜>", "<｜tool_calls_end｜>", "<｜tool calls end｜>"],
);
const DEEPSEEK_CALL: Marks =
    Marks::around(&["<｜tool▁call▁begin｜>", "<｜tool_call_begin｜>"], &["<｜tool▁call▁end｜>", "<｜tool_call_end｜>"]);
const DEEPSEEK_TAIL: &[Markup] = &[Markup::Token("<｜end▁of▁sentence｜>")];
const MISTRAL_THINKS: &[(&str, &str)] = &[("[THINK]", "[/THINK]")];

const MISTRAL: Format = Format {
    call: Marks::maybe(&["[TOOL_CALLS]"], &["[/TOOL_CALLS]"]),
    shape: Shape::Headed { heads: &["{name}[CALL_ID]{id}[ARGS]", "{name}[ARGS]", "{name}"], text_input: false },
    thinks: MISTRAL_THINKS,
    markup: &[Markup::Token("</s>")],
    ..PLAIN
};

const DEEPSEEK: Format = Format {
    section: DEEPSEEK_SECTION,
    call: DEEPSEEK_CALL,
    shape: Shape::Headed { heads: &["function<｜tool▁sep｜>{name}\n", "{name}<｜tool▁sep｜>"], text_input: false },
    markup: DEEPSEEK_TAIL,
    ..PLAIN
};

pub(super) static ROWS: [Format; 21] = [
    Format {
        name: "glm45",
        who: "GLM, with JSON",
        call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Headed { heads: &["{name}"], text_input: false },
        ..PLAIN
    },
    Format {
        name: "glm47",
        who: "GLM, with JSON",
        call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Headed { heads: &["{name}"], text_input: false },
        ..PLAIN
    },
    Format {
        name: "llama31_function",
        who: "Llama 3.1 custom, Functionary 3.1",
        call: Marks::around(&["<function="], &["</function>"]),
        shape: Shape::Headed { heads: &["{name}>"], text_input: false },
        ..PLAIN
    },
    Format {
        name: "functionary_v32",
        who: "Functionary 3.2",
        call: Marks::after(&[">>>"]),
        shape: Shape::Headed { heads: &["{name}\n"], text_input: false },
        weak: true,
        bare: true,
        markup: &[Markup::Token(">>>all\n")],
        ..PLAIN
    },
    Format { name: "pythonic", who: "Llama 3.2/4, ToolACE, BFCL prompts", shape: Shape::Python, list: true, bare: true, ..PLAIN },
    Format {
        name: "llama4_pythonic",
        who: "Llama 4",
        bare: true,
        section: Marks::around(&["<|python_start|>"], &["<|python_end|>"]),
        shape: Shape::Python,
        list: true,
        markup: &[Markup::Token("<|eom|>"), Markup::Token("<|eot|>")],
        ..PLAIN
    },
    Format {
        name: "lfm2",
        who: "LFM2/2.5",
        section: Marks::around(&["<|tool_call_start|>"], &["<|tool_call_end|>"]),
        shape: Shape::Python,
        list: true,
        ..PLAIN
    },
    Format {
        name: "olmo3",
        who: "OLMo 3",
        section: Marks::around(&["<function_calls>"], &["</function_calls>"]),
        shape: Shape::Python,
        list: true,
        ..PLAIN
    },
    Format {
        name: "gemma3_tool_code",
        who: "Gemma 3, prompted",
        section: Marks::around(&["```tool_code\n"], &["```"]),
        shape: Shape::Python,
        list: true,
        markup: &[Markup::Token("<end_of_turn>")],
        ..PLAIN
    },
    Format {
        name: "functiongemma",
        who: "FunctionGemma",
        section: Marks::around(&["<start_function_call>"], &["<end_function_call>"]),
        shape: Shape::Braces("<escape>"),
        markup: &[Markup::Token("<end_of_turn>"), Markup::Token("<start_function_response>")],
        ..PLAIN
    },
    Format {
        name: "gemma4",
        who: "Gemma 4",
        section: Marks::around(&["<|tool_call>", "<|tool_call>:"], &["<tool_call|>", "<turn|>"]),
        shape: Shape::Braces("<|\"|>"),
        bare: true,
        thinks: &[("<|channel>thought\n", "<channel|>"), ("<|channel>", "<channel|>")],
        markup: &[Markup::Token("<turn|>"), Markup::Token("<|tool_response>")],
        ..PLAIN
    },
    Format { name: "mistral_v11", who: "Mistral Small 3.2, Devstral, Magistral, Ministral 3", ..MISTRAL },
    Format {
        name: "mistral_v13",
        who: "Mistral, with [ARGS]",
        shape: Shape::Headed { heads: &["{name}[ARGS]", "{name}[CALL_ID]{id}[ARGS]", "{name}"], text_input: false },
        ..MISTRAL
    },
    Format { name: "mistral_v11_callid", who: "Mistral, with [CALL_ID]", ..MISTRAL },
    Format { name: "deepseek_v3", who: "DeepSeek V3/R1, Cogito", ..DEEPSEEK },
    Format { name: "deepseek_v31", who: "DeepSeek V3.1", ..DEEPSEEK },
    Format {
        name: "kimi_k2",
        who: "Kimi K2, K2.5/2.7",
        section: Marks::around(
            &["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"],
            &["<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
        ),
        call: Marks::around(&["<|tool_call_begin|>"], &["<|tool_call_end|>"]),
        shape: Shape::Headed { heads: &["{function}<|tool_call_argument_begin|>"], text_input: false },
        thinks: &[("◁think▷", "◁/think▷")],
        ..PLAIN
    },
    Format {
        name: "solar_open",
        who: "Solar Open",
        call: Marks::around(&["<|tool_call:begin|>"], &["<|tool_call:end|>"]),
        shape: Shape::Headed { heads: &["{id}<|tool_call:name|>{name}<|tool_call:args|>"], text_input: false },
        thinks: &[("<|think|>", "<|end|>")],
        markup: &[
            Markup::Token("<|content|>"),
            Markup::Token("<|flush|>"),
            Markup::Token("<|tool_calls|>"),
            Markup::Token("<|calls|>"),
            Markup::Token("<|begin|>assistant"),
            Markup::Token("<|end|>"),
        ],
        ..PLAIN
    },
    Format {
        name: "harmony",
        who: "gpt-oss",
        bare: true,
        call: Marks::maybe(&["<|start|>", "<|channel|>"], &["<|call|>", "<|end|>", "<|return|>"]),
        shape: Shape::Channel,
        markup: &[Markup::Token("<|end|>"), Markup::Token("<|return|>"), Markup::Token("<|call|>")],
        ..PLAIN
    },
    Format {
        name: "react",
        who: "ReAct prompts",
        call: Marks::after(&["Action:"]),
        shape: Shape::Headed { heads: &["{name}\nAction Input:"], text_input: true },
        weak: true,
        ..PLAIN
    },
    Format {
        name: "glm4_9b",
        who: "GLM-4-9B",
        shape: Shape::Headed { heads: &["{name}\n"], text_input: false },
        bare: true,
        weak: true,
        ..PLAIN
    },
];
