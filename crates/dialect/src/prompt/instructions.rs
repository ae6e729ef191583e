//! Writes the instructions: the tools, how to call them, and what results look like.

use serde_json::{Map, Value, json};

use super::signature::{list, parameters, signature};
use super::words::Words;
use super::{COMPACT_ABOVE, Choice, MAX_DESCRIPTION, Prompt, PromptFormat, PromptTool, text, write};

/// Returns the complete instructions, or an empty string if there is no tool.
pub(super) fn write(prompt: Prompt, tools: &[&PromptTool<'_>], choice: Choice<'_>) -> String {
    let Some(first) = tools.first() else { return String::new() };
    let words = prompt.words();
    let mut lines = vec![words.tools.to_owned(), String::new()];
    let compact = prompt.compact.unwrap_or(tools.len() > COMPACT_ABOVE);
    if compact {
        lines.extend([words.compact_intro.to_owned(), String::new()]);
        lines.extend(tools.iter().map(|tool| short(prompt, tool)));
    } else {
        lines.push(words.tools_intro.to_owned());
        for tool in tools {
            full(prompt, tool, &mut lines);
        }
    }
    lines.extend([String::new(), words.calling.to_owned(), String::new(), words.calling_intro.to_owned(), form(prompt.form)]);
    if compact {
        lines.extend([words.example.to_owned(), prompt.example(first)]);
    }
    lines.extend([String::new(), words.rules.to_owned()]);
    lines.extend(rules(prompt, choice).iter().enumerate().map(|(index, rule)| format!("{}. {rule}", index + 1)));
    results(prompt.form, words, &mut lines);
    lines.join("\n")
}

/// Returns a call to a placeholder tool, to show the format.
pub(super) fn form(form: PromptFormat) -> String {
    write::call(form, "tool_name", &Map::from_iter([("parameter_name".to_owned(), Value::from("value"))]))
}

fn short(prompt: Prompt, tool: &PromptTool<'_>) -> String {
    let sentence = text::sentence(tool.description);
    let dash = if sentence.is_empty() { "" } else { " - " };
    format!("{}({}){dash}{sentence}", tool.name, signature(&parameters(tool.parameters, prompt.form)))
}

fn full(prompt: Prompt, tool: &PromptTool<'_>, lines: &mut Vec<String>) {
    let words = prompt.words();
    lines.extend([String::new(), format!("## {}", tool.name)]);
    let description = text::line(tool.description, MAX_DESCRIPTION);
    if !description.is_empty() {
        lines.push(format!("{}{description}", words.description));
    }
    let listed = list(&parameters(tool.parameters, prompt.form), words);
    lines.push(if listed.is_empty() { words.no_parameters } else { words.parameters }.to_owned());
    lines.extend(listed);
    lines.extend([words.example.to_owned(), prompt.example(tool)]);
}

fn rules(prompt: Prompt, choice: Choice<'_>) -> [String; 6] {
    let words = prompt.words();
    let (write, parts, several) = match prompt.form {
        PromptFormat::Json => (words.write_json, words.parts_json, words.several_json),
        PromptFormat::Xml => (words.write_xml, words.parts_xml, words.several_xml),
    };
    let last = match choice {
        Choice::Required => words.must_call.to_owned(),
        Choice::Only(name) => words.must_call_only.replace("{}", name),
        Choice::Auto | Choice::None if prompt.structured && prompt.form == PromptFormat::Json => words.no_tool_structured.to_owned(),
        Choice::Auto | Choice::None => words.no_tool.to_owned(),
    };
    [write.to_owned(), parts.to_owned(), several.to_owned(), words.invent_nothing.to_owned(), words.wait.to_owned(), last]
}

fn results(form: PromptFormat, words: &Words, lines: &mut Vec<String>) {
    lines.extend([String::new(), words.results.to_owned(), String::new()]);
    match form {
        PromptFormat::Json => {
            let shown = json!({"id": "call_1", "name": "tool_name", "status": "success", "content": words.result_content});
            lines.extend([words.results_json.to_owned(), write::json(&json!({"tool_result": shown}))]);
            lines.extend([words.result_error.to_owned(), words.result_untrusted_json.to_owned()]);
        }
        PromptFormat::Xml => {
            let content = write::cdata(words.result_content);
            lines.push(words.results_xml.to_owned());
            lines.push(format!("<tool_result id=\"call_1\" name=\"tool_name\" status=\"success\">{content}</tool_result>"));
            lines.extend([words.result_error.to_owned(), words.result_untrusted_xml.to_owned()]);
        }
    }
}
