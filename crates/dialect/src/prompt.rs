//! Prompts a model to call tools in plain text: instructions before the conversation, results and corrections afterwards.
//!
//! Strict mode can parse all calls that this module writes. Names, descriptions and schemas are untrusted: they are written without line
//! breaks and with a maximum length.

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

/// Number of tools above which a list has only one line per tool, unless [`Prompt::compact`] is set.
pub const COMPACT_ABOVE: usize = 20;
/// Maximum length of a tool description, in characters.
pub const MAX_DESCRIPTION: usize = 2_000;
/// Maximum length of a parameter description, in characters.
pub const MAX_PARAMETER_DESCRIPTION: usize = 500;

/// A tool to describe to a model.
#[derive(Debug, Clone, Copy)]
pub struct PromptTool<'a> {
    /// The tool name. The prompt omits a tool whose name is empty, longer than 256 bytes, or contains white space, invisible
    /// characters, quotes, backslashes, `&`, or angle or curly brackets.
    pub name: &'a str,
    /// The description of the tool.
    pub description: &'a str,
    /// The JSON Schema of the tool's parameters.
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
    /// Returns the language code: `en` or `zh`.
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
    /// `{"tool_calls": [{"id", "name", "parameters"}]}`, which the dialect `helve_json` parses.
    #[default]
    Json,
    /// `<tool_call>` with every value in CDATA, which the dialect `helve_xml` parses. The prompt omits a parameter whose name is not a
    /// valid element name.
    Xml,
}

impl PromptFormat {
    /// Returns the short name of the format: `json` or `xml`. [`Dialect::named`] accepts this name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
        }
    }

    /// Returns the dialect that parses calls in this format.
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
    /// The model decides whether to call tools.
    #[default]
    Auto,
    /// The model must not call tools. The prompt describes no tool.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call this tool. The prompt describes no other tool.
    Only(&'a str),
}

impl Choice<'_> {
    /// Returns the tools that the prompt describes.
    fn of<'t, 'a>(self, tools: &'t [PromptTool<'a>]) -> Vec<&'t PromptTool<'a>> {
        let offered = |tool: &&PromptTool<'_>| match self {
            Self::None => false,
            Self::Auto | Self::Required => true,
            Self::Only(name) => tool.name == name,
        };
        tools.iter().filter(offered).filter(|tool| text::is_name(tool.name)).collect()
    }
}

/// A writer for the texts about tools that a model reads.
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
    /// Creates a prompt with English instructions. Long lists of tools are compact.
    #[must_use]
    pub fn new(form: PromptFormat) -> Self {
        Self { form, ..Self::default() }
    }

    /// Sets the language of the instructions.
    #[must_use]
    pub const fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// Sets whether every tool takes only one line. By default this is so with more than [`COMPACT_ABOVE`] tools.
    #[must_use]
    pub const fn compact(mut self, compact: bool) -> Self {
        self.compact = Some(compact);
        self
    }

    /// Sets whether the server constrains the model to [`Prompt::schema`], so that an answer without calls is `{"answer": "…"}`. Has no
    /// effect on XML.
    #[must_use]
    pub const fn structured(mut self, structured: bool) -> Self {
        self.structured = structured;
        self
    }

    /// Returns the instructions for the model: the tools, how to write a call, and what results look like.
    ///
    /// Returns an empty string if the model cannot call any tool: for [`Choice::None`], without tools, and for [`Choice::Only`] with an
    /// unknown name. To distinguish these cases, look up the name first.
    #[must_use]
    pub fn instructions(self, tools: &[PromptTool<'_>], choice: Choice<'_>) -> String {
        instructions::write(self, &choice.of(tools), choice)
    }

    /// Returns the text of a tool result, in the form that the instructions describe.
    #[must_use]
    pub fn result(self, result: &PromptResult<'_>) -> String {
        result::write(self, result)
    }

    /// Returns the message that tells the model about a malformed call: the reason, an excerpt that cannot be parsed as a call, and the
    /// correct form.
    #[must_use]
    pub fn malformed(self, malformed: &Malformed) -> String {
        malformed::write(self, malformed)
    }

    /// Returns the JSON Schema of a whole message, for servers that support structured output: calls in the form of
    /// [`PromptFormat::Json`], or `{"answer": "…"}`, which [`answer_text`] parses.
    ///
    /// With [`Choice::Required`] and [`Choice::Only`], the schema allows only calls. With [`Choice::None`], or if no tool is left, it
    /// allows only the answer. References inside a tool's schema are adjusted; references that cannot be resolved inside it are
    /// removed, so that any value is allowed there.
    #[must_use]
    pub fn schema(tools: &[PromptTool<'_>], choice: Choice<'_>) -> Value {
        schema::write(&choice.of(tools), choice)
    }

    /// Returns an example call to a tool, with generated arguments. Strict parsing with the dialect of this prompt returns exactly these
    /// arguments.
    #[must_use]
    pub fn example(self, tool: &PromptTool<'_>) -> String {
        write::call(self.form, tool.name, &example::arguments(tool, self.form, self.words()))
    }

    const fn words(self) -> &'static words::Words {
        words::of(self.language)
    }
}
