//! The definition of a format as one row of data: one of six call shapes, and the markers around it.

use crate::json::Syntax;

/// One way to write calls.
#[derive(Debug)]
pub(crate) struct Format {
    /// Its name.
    pub name: &'static str,
    /// Which models use it.
    pub who: &'static str,
    /// The markers around all calls of a message.
    pub section: Marks,
    /// The markers around each call.
    pub call: Marks,
    /// The shape of a call.
    pub shape: Shape,
    /// Whether calls may be in a JSON or Python list.
    pub list: bool,
    /// Whether a call may start a message without any marker.
    pub bare: bool,
    /// Whether the markers also occur in prose: only calls of known tools count, and only at the start of a line.
    pub weak: bool,
    /// Tokens between calls without a meaning.
    pub noise: &'static [&'static str],
    /// Markers around reasoning, in addition to `<think>`.
    pub thinks: &'static [(&'static str, &'static str)],
    /// Tokens that are neither text nor part of a call.
    pub markup: &'static [Markup],
}

impl Format {
    /// A short example of a call.
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
    /// Whether the grammar requires the closing one.
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
    Token(&'static str),
    Through(&'static str, &'static str),
    /// Up to but excluding the second one.
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
    /// Whether the call is nested in a `function` object.
    pub wrapped: bool,
    /// Whether arguments may be a string of JSON.
    pub string_arguments: bool,
    /// Whether the tool name is the key itself.
    pub by_key: bool,
    /// Whether the object may be a Python literal.
    pub python: bool,
}

impl Keys {
    pub const fn new(name: &'static str, arguments: &'static str) -> Self {
        Self { name, arguments, id: "id", wrapped: false, string_arguments: false, by_key: false, python: false }
    }
}

/// How tags are written, and what they mean.
#[derive(Debug)]
pub(crate) struct Tags {
    /// What comes before the name of an opening tag, before that of a closing tag, and at the end of both.
    pub open: &'static str,
    pub close: &'static str,
    pub end: &'static str,
    pub call: CallTag,
    pub parameter: ParameterTag,
    /// Whether one line break on each side of a value is layout.
    pub lines: bool,
    /// Whether `<![CDATA[…]]>` is supported.
    pub cdata: bool,
    /// Whether entities such as `&lt;` are supported.
    pub entities: bool,
    /// The attribute with the type of a parameter.
    pub typed: Option<&'static str>,
}

/// Where the tool name is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CallTag {
    /// `<function=name>`
    Equals(&'static str),
    /// `<invoke name="name">`
    Attribute(&'static str, &'static str),
    /// `<tool_call>name`, ended by white space, the first tag or this token.
    Text(Option<&'static str>),
    /// `<tool_call><name>name</name>`
    Child(&'static str),
}

/// Where the parameter name is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParameterTag {
    /// `<parameter=key>value</parameter>`
    Equals(&'static str),
    /// `<parameter name="key">value</parameter>`
    Attribute(&'static str, &'static str),
    /// `<arg_key>key</arg_key><arg_value>value</arg_value>`
    Pair(&'static str, &'static str),
    /// `<key>value</key>`, inside one of these elements.
    Child(&'static [&'static str]),
}
