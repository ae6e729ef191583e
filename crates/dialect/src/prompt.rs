//! Teaches a model to call tools in plain text: instructions before it speaks, results and corrections afterwards.
//!
//! What is written here is what the parser reads in strict mode. Names, descriptions and schemas may be a stranger's:
//! nothing in them can start a line of its own, and all of them are bounded.

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

/// Longer lists of tools are written one line a tool, unless [`Prompt::compact`] says otherwise.
pub const COMPACT_ABOVE: usize = 20;
/// A tool's description is cut after this many characters.
pub const MAX_DESCRIPTION: usize = 2_000;
/// A parameter's description is cut after this many characters.
pub const MAX_PARAMETER_DESCRIPTION: usize = 500;

/// A tool as a model is told of it.
#[derive(Debug, Clone, Copy)]
pub struct PromptTool<'a> {
    /// The name it is called by. A tool whose name cannot stand on a line as it is (empty, longer than 256 bytes, with
    /// white space, control characters, quotes, brackets or `&`) is left out: it could not be called by that name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// The JSON Schema of its parameters.
    pub parameters: &'a Value,
}

/// The language that instructions are written in. Names, types and descriptions stay as they are.
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
            _ => Err(format!("there is no language {code:?}; there are en and zh")),
        }
    }
}

/// The form in which a model is asked to write its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Prompted {
    /// `{"tool_calls": [{"id", "name", "parameters"}]}`, which the dialect `helve_json` reads.
    #[default]
    Json,
    /// `<tool_call>` with every value in CDATA, which the dialect `helve_xml` reads. A parameter whose name is no name
    /// of an element cannot be written in it and is left out.
    Xml,
}

impl Prompted {
    /// Its short name: `json` or `xml`. [`Dialect::named`] knows it, too.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
        }
    }

    /// The dialect that reads what the model then writes.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        Dialect::named(self.as_str()).unwrap_or_else(Dialect::auto)
    }
}

impl FromStr for Prompted {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "json" | "helve_json" | "seed_json" => Ok(Self::Json),
            "xml" | "helve_xml" | "seed_xml_cdata" => Ok(Self::Xml),
            _ => Err(format!("calls are prompted as json or xml, not as {name:?}")),
        }
    }
}

/// Whether the model may, must or must not call tools in its next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice<'a> {
    /// It decides.
    #[default]
    Auto,
    /// It must not call; it is told of no tool at all.
    None,
    /// It must call at least one tool.
    Required,
    /// It must call this tool and is told of no other.
    Only(&'a str),
}

impl Choice<'_> {
    /// The tools that the model is told of.
    fn of<'t, 'a>(self, tools: &'t [PromptTool<'a>]) -> Vec<&'t PromptTool<'a>> {
        let offered = |tool: &&PromptTool<'_>| match self {
            Self::None => false,
            Self::Auto | Self::Required => true,
            Self::Only(name) => tool.name == name,
        };
        tools.iter().filter(offered).filter(|tool| text::is_name(tool.name)).collect()
    }
}

/// Writes what a model reads about tools.
///
/// ```
/// use helve_dialect::{Choice, Prompt, PromptTool, Prompted};
///
/// let parameters = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let tools = [PromptTool { name: "get_weather", description: "Tells the weather.", parameters: &parameters }];
/// let text = Prompt::new(Prompted::Json).instructions(&tools, Choice::Auto);
/// assert!(text.contains(r#"{"tool_calls": [{"id": "call_1", "name": "get_weather", "parameters": {"city": "example city"}}]}"#));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prompt {
    form: Prompted,
    language: Language,
    compact: Option<bool>,
    structured: bool,
}

impl Prompt {
    /// In English, with long lists compact.
    #[must_use]
    pub fn new(form: Prompted) -> Self {
        Self { form, ..Self::default() }
    }

    /// In another language.
    #[must_use]
    pub const fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// Always one line a tool, or never. Left alone, it is so for more than [`COMPACT_ABOVE`] tools.
    #[must_use]
    pub const fn compact(mut self, compact: bool) -> Self {
        self.compact = Some(compact);
        self
    }

    /// The server holds the model to [`Prompt::schema`], so that an answer without calls is `{"answer": "…"}`, too.
    /// It means something for JSON only.
    #[must_use]
    pub const fn structured(mut self, structured: bool) -> Self {
        self.structured = structured;
        self
    }

    /// What a model must know before it can call tools: the tools, how a call is written, what results look like.
    ///
    /// It is empty where nothing can be called: for [`Choice::None`], for no tools, and for [`Choice::Only`] with a name that
    /// is not among the tools. Who must know the difference looks the name up first.
    #[must_use]
    pub fn instructions(self, tools: &[PromptTool<'_>], choice: Choice<'_>) -> String {
        instructions::write(self, &choice.of(tools), choice)
    }

    /// What a tool gave, as the instructions announce it.
    #[must_use]
    pub fn result(self, result: &PromptResult<'_>) -> String {
        result::write(self, result)
    }

    /// Why a call could not be read, a bounded piece of it that cannot be read as a call, and the right form.
    #[must_use]
    pub fn malformed(self, malformed: &Malformed) -> String {
        malformed::write(self, malformed)
    }

    /// The JSON Schema of a whole message, for servers that can hold a model to one: calls in the form of
    /// [`Prompted::Json`], or `{"answer": "…"}`, which [`answer_text`] reads.
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
