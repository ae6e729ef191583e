//! Prompts a model to call tools in plain text: instructions before the conversation, results and corrections afterwards.
//!
//! What is written here can be parsed in strict mode. Names, descriptions and schemas are untrusted: nothing in them can start a new line,
//! and all of them have a maximum length.

mod example;
mod instructions;
mod malformed;
mod result;
mod schema;
mod shape;
mod signature;
mod text;
mod words;
mod write;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use result::PromptResult;
pub use schema::answer_text;

use crate::dialect::Dialect;
use crate::event::Malformed;

/// Longer lists of tools are written with one line per tool, unless [`Prompt::compact`] is set.
pub const COMPACT_ABOVE: usize = 20;
/// Maximum length of a tool description in characters.
pub const MAX_DESCRIPTION: usize = 2_000;
/// Maximum length of a parameter description in characters.
pub const MAX_PARAMETER_DESCRIPTION: usize = 500;

/// A tool as described to a model.
#[derive(Debug, Clone, Copy)]
pub struct PromptTool<'a> {
    /// The tool name. A tool is omitted if its name cannot be written as it is: if it is empty, longer than 256 bytes, or contains
    /// white space, control characters, quotes, brackets or `&`.
    pub name: &'a str,
    /// The description.
    pub description: &'a str,
    /// The JSON Schema of its parameters.
    pub parameters: &'a Value,
}

/// The language of the instructions. Names, types and descriptions are not translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Language {
    /// English, `en`.
    #[default]
    #[serde(rename = "en")]
    English,
    /// Simplified Chinese, `zh`.
    #[serde(rename = "zh")]
    Chinese,
}

impl Language {
    /// Its code: `en` or `zh`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(code: &str) -> Result<Self, String> {
        match code {
            "en" => Ok(Self::English),
            "zh" => Ok(Self::Chinese),
            _ => Err(format!("unknown language {code:?}; expected `en` or `zh`")),
        }
    }
}

/// The format in which a model is prompted to write calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PromptFormat {
    /// `{"tool_calls": [{"id", "name", "parameters"}]}`, which the dialect `helve_json` reads.
    #[default]
    Json,
    /// `<tool_call>` with every value in CDATA, which the dialect `helve_xml` reads. A parameter whose name is not a valid element name is
    /// omitted.
    Xml,
}

impl PromptFormat {
    /// Its short name: `json` or `xml`. [`Dialect::named`] accepts it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
        }
    }

    /// The dialect that parses the calls.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        Dialect::named(self.as_str()).unwrap_or_else(Dialect::auto)
    }
}

impl FromStr for PromptFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "json" | "helve_json" | "seed_json" => Ok(Self::Json),
            "xml" | "helve_xml" | "seed_xml_cdata" => Ok(Self::Xml),
            _ => Err(format!("unknown prompt format {name:?}; expected `json` or `xml`")),
        }
    }
}

/// Whether the model may, must or must not call tools in its next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice<'a> {
    /// The model decides.
    #[default]
    Auto,
    /// It must not call tools; no tool is described.
    None,
    /// It must call at least one tool.
    Required,
    /// It must call this tool; no other tool is described.
    Only(&'a str),
}

impl Choice<'_> {
    /// The tools that are described.
    fn of<'t, 'a>(self, tools: &'t [PromptTool<'a>]) -> Vec<&'t PromptTool<'a>> {
        let offered = |tool: &&PromptTool<'_>| match self {
            Self::None => false,
            Self::Auto | Self::Required => true,
            Self::Only(name) => tool.name == name,
        };
        tools.iter().filter(offered).filter(|tool| text::is_name(tool.name)).collect()
    }
}

/// Writes the texts about tools that a model reads.
///
/// ```
/// use helve_dialect::{Choice, Prompt, PromptTool, PromptFormat};
///
/// let parameters = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let tools = [PromptTool { name: "get_weather", description: "Tells the weather.", parameters: &parameters }];
/// let text = Prompt::new(PromptFormat::Json).instructions(&tools, Choice::Auto);
/// assert!(text.contains(r#"{"tool_calls": [{"id": "call_1", "name": "get_weather", "parameters": {"city": "example city"}}]}"#));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prompt {
    form: PromptFormat,
    language: Language,
    compact: Option<bool>,
    structured: bool,
}

impl Prompt {
    /// English instructions; long lists are compact.
    #[must_use]
    pub fn new(form: PromptFormat) -> Self {
        Self { form, ..Self::default() }
    }

    /// Sets the language.
    #[must_use]
    pub const fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// Sets whether every tool takes one line. By default only with more than [`COMPACT_ABOVE`] tools.
    #[must_use]
    pub const fn compact(mut self, compact: bool) -> Self {
        self.compact = Some(compact);
        self
    }

    /// Sets whether the server constrains the model to [`Prompt::schema`], so that an answer without calls is `{"answer": "…"}`. JSON only.
    #[must_use]
    pub const fn structured(mut self, structured: bool) -> Self {
        self.structured = structured;
        self
    }

    /// The instructions: the tools, how to write a call, and what results look like.
    ///
    /// Empty if nothing can be called: for [`Choice::None`], without tools, and for [`Choice::Only`] with an unknown name. To tell these cases
    /// apart, look up the name first.
    #[must_use]
    pub fn instructions(self, tools: &[PromptTool<'_>], choice: Choice<'_>) -> String {
        instructions::write(self, &choice.of(tools), choice)
    }

    /// The result of a tool, as the instructions announce it.
    #[must_use]
    pub fn result(self, result: &PromptResult<'_>) -> String {
        result::write(self, result)
    }

    /// Why a call could not be parsed, a harmless excerpt of it, and the right form.
    #[must_use]
    pub fn malformed(self, malformed: &Malformed) -> String {
        malformed::write(self, malformed)
    }

    /// The JSON Schema of a whole message, for servers that can hold a model to one: calls in the form of
    /// [`PromptFormat::Json`], or `{"answer": "…"}`, which [`answer_text`] reads.
    ///
    /// [`Choice::Required`] and [`Choice::Only`] leave only calls; [`Choice::None`] only the answer, and so does every choice
    /// that leaves no tool. References inside a tool's schema still lead to the same place; those that lead nowhere in it
    /// are dropped, so that anything is allowed there.
    #[must_use]
    pub fn schema(tools: &[PromptTool<'_>], choice: Choice<'_>) -> Value {
        schema::write(&choice.of(tools), choice)
    }

    /// A call that shows how the tool is called, with made up arguments. The dialect of this prompt reads exactly these
    /// arguments from it, in strict mode.
    #[must_use]
    pub fn example(self, tool: &PromptTool<'_>) -> String {
        write::call(self.form, tool.name, &example::arguments(tool, self.form, self.words()))
    }

    const fn words(self) -> &'static words::Words {
        words::of(self.language)
    }
}
