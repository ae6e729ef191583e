//! The formats that models write, each a row.

use crate::format::{CallTag, Format, Keys, Marks, Markup, ParameterTag, Shape, Tags};

const PLAIN: Format = Format {
    name: "",
    who: "",
    section: Marks::NONE,
    call: Marks::NONE,
    shape: Shape::Object(ARGUMENTS),
    list: false,
    bare: false,
    weak: false,
    noise: &[],
    thinks: &[],
    markup: &[],
};

const ARGUMENTS: Keys = Keys::new("name", "arguments");
const PARAMETERS: Keys = Keys::new("name", "parameters");

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

const DEEPSEEK_SECTION: Marks =
    Marks::around(&["<｜tool▁calls▁begin｜>", "<｜tool_calls_begin｜>", "<｜tool calls begin｜>"], &["<｜tool▁calls▁end｜>", "<｜tool_calls_end｜>", "<｜tool calls end｜>"]);
const DEEPSEEK_CALL: Marks = Marks::around(&["<｜tool▁call▁begin｜>", "<｜tool_call_begin｜>"], &["<｜tool▁call▁end｜>", "<｜tool_call_end｜>"]);
const DEEPSEEK_TAIL: &[Markup] = &[Markup::Token("<｜end▁of▁sentence｜>")];
const MISTRAL_THINKS: &[(&str, &str)] = &[("[THINK]", "[/THINK]")];
const COHERE_THINKS: &[(&str, &str)] = &[("<|START_THINKING|>", "<|END_THINKING|>")];
const COHERE_MARKUP: &[Markup] = &[
    Markup::Token("<|START_RESPONSE|>"),
    Markup::Token("<|END_RESPONSE|>"),
    Markup::Token("<|START_TEXT|>"),
    Markup::Token("<|END_TEXT|>"),
    Markup::Token("<|END_OF_TURN_TOKEN|>"),
];
const ANSWER: &[Markup] = &[Markup::Token("<answer>"), Markup::Token("</answer>"), Markup::Token("<｜hy_eos｜>"), Markup::Token("<｜hy_eos:opensource｜>")];
const LLAMA_TAIL: &[&str] = &["<|eom_id|>", "<|eot_id|>"];

/// Every format, by the order in which `auto` prefers them where the text leaves a choice.
pub(crate) static TABLE: [Format; 64] = [
    Format {
        name: "seed_json",
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
    Format {
        name: "seed_xml_cdata",
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
    Format {
        name: "glm45",
        who: "GLM 4.5/4.6, Poolside Laguna, Ling 3",
        call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Tagged(GLM),
        thinks: &[("<thought>", "</thought>")],
        markup: &[Markup::Token("<|observation|>"), Markup::Token("<|user|>")],
        ..PLAIN
    },
    Format {
        name: "glm45",
        who: "GLM, with JSON",
        call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Headed { heads: &["{name}"], text_input: false },
        ..PLAIN
    },
    Format {
        name: "glm47",
        who: "GLM 4.7/5",
        call: Marks::around(&["<tool_call>"], &["</tool_call>"]),
        shape: Shape::Tagged(GLM),
        thinks: &[("<thought>", "</thought>")],
        markup: &[Markup::Token("<|observation|>"), Markup::Token("<|user|>")],
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
        name: "granite31",
        who: "Granite 3.1+",
        section: Marks::maybe(&["<tool_call>"], &["</tool_call>"]),
        list: true,
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
        name: "anthropic",
        who: "Claude 2/3 prompts",
        section: Marks::around(&["<function_calls>"], &["</function_calls>"]),
        shape: Shape::Tagged(XML),
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
    Format {
        name: "mistral_v3",
        who: "Mistral 7B v0.3, Nemo, Mixtral, Ministral 8B",
        section: Marks::maybe(&["[TOOL_CALLS]"], &["[/TOOL_CALLS]"]),
        list: true,
        thinks: MISTRAL_THINKS,
        markup: &[Markup::Token("</s>")],
        ..PLAIN
    },
    Format {
        name: "mistral_v11",
        who: "Mistral Small 3.2, Devstral, Magistral, Ministral 3",
        call: Marks::maybe(&["[TOOL_CALLS]"], &["[/TOOL_CALLS]"]),
        shape: Shape::Headed { heads: &["{name}[CALL_ID]{id}[ARGS]", "{name}[ARGS]", "{name}"], text_input: false },
        thinks: MISTRAL_THINKS,
        markup: &[Markup::Token("</s>")],
        ..PLAIN
    },
    Format {
        name: "mistral_v13",
        who: "Mistral, with [ARGS]",
        call: Marks::maybe(&["[TOOL_CALLS]"], &["[/TOOL_CALLS]"]),
        shape: Shape::Headed { heads: &["{name}[ARGS]", "{name}[CALL_ID]{id}[ARGS]", "{name}"], text_input: false },
        thinks: MISTRAL_THINKS,
        markup: &[Markup::Token("</s>")],
        ..PLAIN
    },
    Format {
        name: "mistral_v11_callid",
        who: "Mistral, with [CALL_ID]",
        call: Marks::maybe(&["[TOOL_CALLS]"], &["[/TOOL_CALLS]"]),
        shape: Shape::Headed { heads: &["{name}[CALL_ID]{id}[ARGS]", "{name}[ARGS]", "{name}"], text_input: false },
        thinks: MISTRAL_THINKS,
        markup: &[Markup::Token("</s>")],
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
        name: "deepseek_v3",
        who: "DeepSeek V3/R1, Cogito",
        section: DEEPSEEK_SECTION,
        call: DEEPSEEK_CALL,
        shape: Shape::Headed { heads: &["function<｜tool▁sep｜>{name}\n", "{name}<｜tool▁sep｜>"], text_input: false },
        markup: DEEPSEEK_TAIL,
        ..PLAIN
    },
    Format {
        name: "deepseek_v31",
        who: "DeepSeek V3.1",
        section: DEEPSEEK_SECTION,
        call: DEEPSEEK_CALL,
        shape: Shape::Headed { heads: &["function<｜tool▁sep｜>{name}\n", "{name}<｜tool▁sep｜>"], text_input: false },
        markup: DEEPSEEK_TAIL,
        ..PLAIN
    },
    Format {
        name: "deepseek_v32",
        who: "DeepSeek V3.2",
        section: Marks::around(&["<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"], &["</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"]),
        shape: Shape::Tagged(DSML),
        markup: DEEPSEEK_TAIL,
        ..PLAIN
    },
    Format {
        name: "deepseek_v4",
        who: "DeepSeek V4",
        section: Marks::around(&["<｜DSML｜tool_calls>", "<｜DSML｜function_calls>"], &["</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"]),
        shape: Shape::Tagged(DSML),
        markup: DEEPSEEK_TAIL,
        ..PLAIN
    },
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
        name: "jamba",
        who: "Jamba, Apriel",
        section: Marks::around(&["<tool_calls>"], &["</tool_calls>"]),
        list: true,
        ..PLAIN
    },
    Format {
        name: "hunyuan_a13b",
        who: "Hunyuan A13B",
        markup: ANSWER,
        section: Marks::around(&["<tool_calls>"], &["</tool_calls>"]),
        list: true,
        ..PLAIN
    },
    Format {
        name: "minimax_m1",
        who: "MiniMax M1",
        section: Marks::around(&["<tool_calls>"], &["</tool_calls>"]),
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
        shape: Shape::Tagged(Tags {
            open: "]<]minimax[>[<",
            close: "]<]minimax[>[</",
            parameter: ParameterTag::Child(&[]),
            ..XML
        }),
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
        name: "dots",
        who: "dots, with JSON",
        section: Marks::around(&["<dots_function_call>"], &["</dots_function_call>"]),
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
    Format { name: "granite3", who: "Granite 3.0", section: Marks::after(&["<|tool_call|>"]), list: true, ..PLAIN },
    Format { name: "granite20b", who: "Granite 20B", section: Marks::after(&["<function_call>"]), ..PLAIN },
    Format {
        name: "phi4mini",
        who: "Phi-4-mini, FireFunction",
        section: Marks::after(&["functools["]),
        list: true,
        ..PLAIN
    },
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
    Format {
        name: "nemotron_v2",
        who: "Nemotron Nano v2",
        section: Marks::around(&["<TOOLCALL>"], &["</TOOLCALL>"]),
        list: true,
        ..PLAIN
    },
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
        name: "inkling",
        who: "Inkling",
        section: Marks::around(
            &["<|message_model|><|content_invoke_tool_json|>", "<|content_invoke_tool_json|>"],
            &["<|end_message|>"],
        ),
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
