//! Formats in which a call consists of tags, with values as text.

use super::PLAIN;
use crate::format::{CallTag, Format, Marks, Markup, ParameterTag, Shape, Tags};

const XML: Tags = Tags {
    open: "<",
    close: "</",
    end: ">",
    call: CallTag::Attribute("invoke", "name"),
    parameter: ParameterTag::Attribute("parameter", "name"),
    lines: false,
    cdata: false,
    entities: false,
    typed: None,
};
const GLM: Tags = Tags { call: CallTag::Text(None), parameter: ParameterTag::Pair("arg_key", "arg_value"), ..XML };
const QWEN: Tags = Tags { call: CallTag::Equals("function"), parameter: ParameterTag::Equals("parameter"), lines: true, ..XML };
const DSML: Tags = Tags { open: "<｜DSML｜", close: "</｜DSML｜", typed: Some("string"), ..XML };
const DEEPSEEK_TAIL: &[Markup] = &[Markup::Token("<｜end▁of▁sentence｜>")];
const ANSWER: &[Markup] =
    &[Markup::Token("<answer>"), Markup::Token("</answer>"), Markup::Token("<｜hy_eos｜>"), Markup::Token("<｜hy_eos:opensource｜>")];

const GLM_ROW: Format = Format {
    call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
    shape: Shape::Tagged(GLM),
    thinks: &[("<thought>", "</thought>")],
    markup: &[Markup::Token("<|observation|>"), Markup::Token("<|user|>")],
    ..PLAIN
};

pub(super) static ROWS: [Format; 18] = [
    Format {
        name: "helve_xml",
        who: "Helve's prompted XML",
        call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Tagged(Tags {
            call: CallTag::Child("name"),
            parameter: ParameterTag::Child(&["params", "parameters"]),
            cdata: true,
            entities: true,
            ..XML
        }),
        ..PLAIN
    },
    Format {
        name: "seed_xml_attr",
        who: "Helve's prompted XML, with attributes",
        shape: Shape::Tagged(Tags {
            call: CallTag::Attribute("tool_call", "name"),
            parameter: ParameterTag::Child(&["parameters", "params"]),
            cdata: true,
            entities: true,
            ..XML
        }),
        ..PLAIN
    },
    Format {
        name: "qwen3_coder",
        who: "Qwen3-Coder, Qwen3.5+, Nemotron 3, Step 3.5, MiMo",
        section: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Tagged(QWEN),
        noise: &["</function_invocation>"],
        ..PLAIN
    },
    Format {
        name: "seed_oss",
        who: "Seed-OSS",
        section: Marks::around(&["<seed:tool_call>"], &["</seed:tool_call>"]),
        shape: Shape::Tagged(QWEN),
        thinks: &[("<seed:think>", "</seed:think>")],
        ..PLAIN
    },
    Format { name: "glm45", who: "GLM 4.5/4.6, Poolside Laguna, Ling 3", ..GLM_ROW },
    Format { name: "glm47", who: "GLM 4.7/5", ..GLM_ROW },
    Format {
        name: "minicpm5",
        who: "MiniCPM 5",
        shape: Shape::Tagged(Tags {
            call: CallTag::Attribute("function", "name"),
            parameter: ParameterTag::Attribute("param", "name"),
            cdata: true,
            ..XML
        }),
        ..PLAIN
    },
    Format {
        name: "anthropic",
        who: "Claude 2/3 prompts",
        section: Marks::around(&["<function_calls>"], &["</function_calls>"]),
        shape: Shape::Tagged(XML),
        ..PLAIN
    },
    Format {
        name: "step3",
        who: "Step 3",
        section: Marks::around(&["<｜tool_calls_begin｜>"], &["<｜tool_calls_end｜>"]),
        shape: Shape::Tagged(Tags { open: "<steptml:", close: "</steptml:", ..XML }),
        noise: &["<｜tool_call_begin｜>", "function<｜tool_sep｜>", "<｜tool_sep｜>", "<｜tool_call_end｜>"],
        ..PLAIN
    },
    Format {
        name: "deepseek_v32",
        who: "DeepSeek V3.2",
        section: Marks::around(
            &["<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"],
            &["</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"],
        ),
        shape: Shape::Tagged(DSML),
        markup: DEEPSEEK_TAIL,
        ..PLAIN
    },
    Format {
        name: "deepseek_v4",
        who: "DeepSeek V4",
        section: Marks::around(
            &["<｜DSML｜tool_calls>", "<｜DSML｜function_calls>"],
            &["</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"],
        ),
        shape: Shape::Tagged(DSML),
        markup: DEEPSEEK_TAIL,
        ..PLAIN
    },
    Format {
        name: "kimi_k3",
        who: "Kimi K3",
        section: Marks::around(&["<|open|>tools<|sep|>"], &["<|close|>tools<|sep|>"]),
        shape: Shape::Tagged(Tags {
            open: "<|open|>",
            close: "<|close|>",
            end: "<|sep|>",
            call: CallTag::Attribute("call", "tool"),
            parameter: ParameterTag::Attribute("argument", "key"),
            typed: Some("type"),
            ..XML
        }),
        thinks: &[("<|open|>think<|sep|>", "<|close|>think<|sep|>")],
        markup: &[
            Markup::Token("<|open|>response<|sep|>"),
            Markup::Token("<|close|>response<|sep|>"),
            Markup::Token("<|open|>message<|sep|>"),
            Markup::Token("<|close|>message<|sep|>"),
            Markup::Token("<|end_of_msg|>"),
        ],
        ..PLAIN
    },
    Format {
        name: "hy_v3",
        who: "Hunyuan 3",
        section: Marks::around(&["<tool_calls>"], &["</tool_calls>"]),
        call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Tagged(Tags { call: CallTag::Text(Some("<tool_sep>")), ..GLM }),
        markup: ANSWER,
        ..PLAIN
    },
    Format {
        name: "hy_v3",
        who: "Hunyuan 3, with the suffix of its released tokenizer",
        section: Marks::around(&["<tool_calls:opensource>"], &["</tool_calls:opensource>"]),
        call: Marks::around(&["<tool_call:opensource>"], &["</tool_call:opensource>"]),
        shape: Shape::Tagged(Tags { call: CallTag::Text(Some("<tool_sep:opensource>")), end: ":opensource>", ..GLM }),
        thinks: &[("<think:opensource>", "</think:opensource>")],
        markup: ANSWER,
        ..PLAIN
    },
    Format {
        name: "minimax_m2",
        who: "MiniMax M2",
        section: Marks::around(&["<minimax:tool_call>"], &["</minimax:tool_call>"]),
        shape: Shape::Tagged(XML),
        ..PLAIN
    },
    Format {
        name: "minimax_m3",
        who: "MiniMax M3",
        section: Marks::around(&["]<]minimax[>[<tool_call>"], &["]<]minimax[>[</tool_call>"]),
        shape: Shape::Tagged(Tags { open: "]<]minimax[>[<", close: "]<]minimax[>[</", parameter: ParameterTag::Child(&[]), ..XML }),
        thinks: &[("<mm:think>", "</mm:think>")],
        ..PLAIN
    },
    Format {
        name: "dots",
        who: "dots",
        section: Marks::around(&["<dots_function_call>"], &["</dots_function_call>"]),
        shape: Shape::Tagged(XML),
        ..PLAIN
    },
    Format {
        name: "muse_glimmer",
        who: "Muse Glimmer",
        section: Marks::around(&["<atem:function_calls>"], &["</atem:function_calls>"]),
        shape: Shape::Tagged(Tags { open: "<atem:", close: "</atem:", ..XML }),
        markup: &[Markup::Through("<|start|>", "<|message|>"), Markup::Token("<|eom|>"), Markup::Token("<|eot|>")],
        ..PLAIN
    },
];
