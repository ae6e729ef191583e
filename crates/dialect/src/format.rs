//! What a format is: one row of data. Six shapes of calls, and the marks around them.

use crate::json::Syntax;

/// One way to write calls.
#[derive(Debug)]
pub(crate) struct Format {
    /// Its name, as people and programs use it.
    pub name: &'static str,
    /// Who writes so.
    pub who: &'static str,
    /// The marks around all calls of a message.
    pub section: Marks,
    /// The marks around each call.
    pub call: Marks,
    /// What stands between them.
    pub shape: Shape,
    /// Calls may stand in a JSON or Python list.
    pub list: bool,
    /// A call may stand at the start of a message without any mark.
    pub bare: bool,
    /// The marks also occur in prose: only calls to known tools count, and only at the start of a line.
    pub weak: bool,
    /// Tokens between calls that mean nothing.
    pub noise: &'static [&'static str],
    /// The family's own marks around thoughts, beside `<think>`.
    pub thinks: &'static [(&'static str, &'static str)],
    /// Tokens that are neither text nor call.
    pub markup: &'static [Markup],
}

impl Format {
    /// What a call looks like, in a few words.
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

/// What opens and what closes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    pub open: &'static [&'static str],
    pub close: &'static [&'static str],
    /// The grammar wants the closing one.
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

/// A control token, or a run of text between two of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Markup {
    Token(&'static str),
    Through(&'static str, &'static str),
    /// Up to, and without, the second one.
    Upto(&'static str, &'static str),
}

/// The six shapes.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A JSON object that names the tool.
    Object(Keys),
    /// The tool's name, a separator, then the arguments as JSON. Heads are templates with `{name}` and `{id}`.
    Headed { heads: &'static [&'static str], text_input: bool },
    /// The tool's name and arguments in tags, values as text.
    Tagged(Tags),
    /// `name(key=value)`.
    Python,
    /// `call:name{key:value}`.
    Braces(&'static str),
    /// Channels with a header, as in harmony.
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

/// Which keys of an object mean what.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table")]
pub(crate) struct Keys {
    pub name: &'static str,
    pub arguments: &'static str,
    pub id: &'static str,
    /// The call stands inside a `function` object.
    pub wrapped: bool,
    /// Arguments may be JSON inside a string.
    pub string_arguments: bool,
    /// The tool's name is the key itself.
    pub by_key: bool,
    /// The object may be written as a Python literal.
    pub python: bool,
}

impl Keys {
    pub const fn new(name: &'static str, arguments: &'static str) -> Self {
        Self { name, arguments, id: "id", wrapped: false, string_arguments: false, by_key: false, python: false }
    }
}

/// How tags are written, and which of them mean what.
#[derive(Debug)]
pub(crate) struct Tags {
    /// What stands before an opening tag's name, before a closing one's, and at the end of both.
    pub open: &'static str,
    pub close: &'static str,
    pub end: &'static str,
    pub call: CallTag,
    pub parameter: ParameterTag,
    /// One line break on each side of a value is layout.
    pub lines: bool,
    /// `<![CDATA[…]]>` is understood.
    pub cdata: bool,
    /// `&lt;` and the like are understood.
    pub entities: bool,
    /// The attribute of a parameter that tells its type.
    pub typed: Option<&'static str>,
}

/// Where the tool's name is.
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

/// Where a parameter's name is.
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
