//! Defines a format as data: one of six call shapes, and the markers around the calls.

use crate::json::Syntax;

/// A format in which models write calls.
#[derive(Debug)]
pub(crate) struct Format {
    /// The name of the format.
    pub name: &'static str,
    /// The models that use the format.
    pub who: &'static str,
    /// The markers around all calls in a message.
    pub section: Marks,
    /// The markers around each call.
    pub call: Marks,
    /// The shape of a call.
    pub shape: Shape,
    /// Whether the calls may be items of a JSON or Python list.
    pub list: bool,
    /// Whether a message may start with a call without any marker.
    pub bare: bool,
    /// Whether the markers also occur in ordinary text. Then only calls to known tools at the start of a line count.
    pub weak: bool,
    /// Tokens between calls that have no meaning.
    pub noise: &'static [&'static str],
    /// Markers around reasoning, in addition to `<think>`.
    pub thinks: &'static [(&'static str, &'static str)],
    /// Tokens that are neither text nor part of a call.
    pub markup: &'static [Markup],
}

impl Format {
    /// Returns a short example of a call, for error messages.
    pub fn grammar(&self) -> String {
        let open = self.section.open.first().or(self.call.open.first()).copied().unwrap_or_default();
        let close = self.section.close.first().or(self.call.close.first()).copied().unwrap_or_default();
        let inner = match &self.shape {
            Shape::Object(keys) => format!("{{\"{}\": …, \"{}\": {{…}}}}", keys.name, keys.arguments),
            Shape::Headed { .. } => "name {…}".to_owned(),
            Shape::Tagged(_) => "the tool's name and its parameters in tags".to_owned(),
            Shape::Python => "name(key=value)".to_owned(),
            Shape::Braces(_) => "call:name{…}".to_owned(),
            Shape::Channel => "JSON".to_owned(),
        };
        format!("{open}{inner}{close}")
    }
}

/// An opening and a closing marker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    pub open: &'static [&'static str],
    pub close: &'static [&'static str],
    /// Whether the grammar requires the closing marker.
    pub must_close: bool,
}

impl Marks {
    pub const NONE: Self = Self { open: &[], close: &[], must_close: false };

    pub const fn around(open: &'static [&'static str], close: &'static [&'static str]) -> Self {
        Self { open, close, must_close: true }
    }

    pub const fn after(open: &'static [&'static str]) -> Self {
        Self { open, close: &[], must_close: false }
    }

    pub const fn maybe(open: &'static [&'static str], close: &'static [&'static str]) -> Self {
        Self { open, close, must_close: false }
    }
}

/// A control token, or the text between two of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Markup {
    /// A single control token.
    Token(&'static str),
    /// The text from the first literal up to and including the second one.
    Through(&'static str, &'static str),
    /// The text from the first literal up to, but excluding, the second one.
    Upto(&'static str, &'static str),
}

/// The six shapes of calls.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A JSON object that names the tool.
    Object(Keys),
    /// The tool name, a separator, then the arguments as JSON. Heads are templates with `{name}` and `{id}`.
    Headed { heads: &'static [&'static str], text_input: bool },
    /// The tool name and arguments in tags, with values as text.
    Tagged(Tags),
    /// `name(key=value)`.
    Python,
    /// `call:name{key:value}`.
    Braces(&'static str),
    /// Channels with a header, as in Harmony.
    Channel,
}

impl Shape {
    pub fn syntax(&self) -> Syntax {
        match self {
            Self::Python => Syntax::Python,
            Self::Braces(mark) => Syntax::Braces(mark),
            _ => Syntax::Json,
        }
    }
}

/// The keys of a JSON call.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table")]
pub(crate) struct Keys {
    pub name: &'static str,
    pub arguments: &'static str,
    pub id: &'static str,
    /// Whether name and arguments are nested in a `function` object.
    pub wrapped: bool,
    /// Whether the arguments may be JSON in a string.
    pub string_arguments: bool,
    /// Whether the tool name is the key and the arguments are its value.
    pub by_key: bool,
    /// Whether the object may be a Python literal.
    pub python: bool,
}

impl Keys {
    pub const fn new(name: &'static str, arguments: &'static str) -> Self {
        Self { name, arguments, id: "id", wrapped: false, string_arguments: false, by_key: false, python: false }
    }
}

/// The syntax of tags, and their meaning.
#[derive(Debug)]
pub(crate) struct Tags {
    /// The start of an opening tag, such as `<`.
    pub open: &'static str,
    /// The start of a closing tag, such as `</`.
    pub close: &'static str,
    /// The end of every tag, such as `>`.
    pub end: &'static str,
    pub call: CallTag,
    pub parameter: ParameterTag,
    /// Whether one line break on each side of a value is not part of the value.
    pub lines: bool,
    /// Whether `<![CDATA[…]]>` is supported.
    pub cdata: bool,
    /// Whether entities such as `&lt;` are supported.
    pub entities: bool,
    /// The attribute that contains the type of a parameter.
    pub typed: Option<&'static str>,
}

/// The position of the tool name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CallTag {
    /// `<function=name>`
    Equals(&'static str),
    /// `<invoke name="name">`
    Attribute(&'static str, &'static str),
    /// `<tool_call>name`. The name ends at a line break, at the first tag or at this token.
    Text(Option<&'static str>),
    /// `<tool_call><name>name</name>`
    Child(&'static str),
}

/// The position of the parameter name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParameterTag {
    /// `<parameter=key>value</parameter>`
    Equals(&'static str),
    /// `<parameter name="key">value</parameter>`
    Attribute(&'static str, &'static str),
    /// `<arg_key>key</arg_key><arg_value>value</arg_value>`
    Pair(&'static str, &'static str),
    /// `<key>value</key>` inside one of these elements.
    Child(&'static [&'static str]),
}
