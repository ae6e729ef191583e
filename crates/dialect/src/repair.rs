//! The names of what lenient reading mends. A call says which of them it needed.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! repairs {
    ($($(#[$doc:meta])* $name:ident = $word:literal),* $(,)?) => {
        /// One thing that was mended on the way from a model's text to a call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Repair { $($(#[$doc])* $name),* }

        impl Repair {
            /// Every repair there is.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name, as it is written in JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }
        }
    };
}

repairs! {
    /// A comma before a closing bracket.
    TrailingComma = "trailing_comma",
    /// Strings in single quotes.
    SingleQuotes = "single_quotes",
    /// A key, or a plain word, without quotes.
    Unquoted = "unquoted",
    /// `//` or `/* */`.
    Comment = "comment",
    /// `True`, `False`, `None` in JSON, or `true`, `false`, `null` in Python.
    ForeignLiteral = "foreign_literal",
    /// A number that the grammar does not have, such as `+1`, `.5` or `007`.
    OddNumber = "odd_number",
    /// An integer that does not fit 64 bits, kept as text so that no digit is lost. Who runs calls should refuse this one.
    WideInteger = "wide_integer",
    /// A line break or another control character inside a string.
    RawControl = "raw_control",
    /// A backslash before a character that needs none.
    BadEscape = "bad_escape",
    /// Half of a surrogate pair, replaced.
    LoneSurrogate = "lone_surrogate",
    /// The last closing brackets were missing.
    MissingBracket = "missing_bracket",
    /// There was a closing bracket too many.
    ExtraBracket = "extra_bracket",
    /// A comma was missing.
    MissingComma = "missing_comma",
    /// A key came twice; the last one counts. Others may read it as the first one: who runs calls should refuse this one.
    DuplicateKey = "duplicate_key",
    /// The call used another family's names for its parts.
    OtherKey = "other_key",
    /// The call sat inside a `function` object.
    FunctionWrapper = "function_wrapper",
    /// Arguments came as JSON inside a string.
    StringArguments = "string_arguments",
    /// No arguments were given at all.
    MissingArguments = "missing_arguments",
    /// An argument without its name went to the only required parameter.
    PositionalArgument = "positional_argument",
    /// The marker before the call was missing.
    MissingOpen = "missing_open",
    /// The marker after the call was missing.
    MissingClose = "missing_close",
    /// The end of a parameter was missing.
    MissingParameterClose = "missing_parameter_close",
    /// The element around the parameters was missing.
    MissingWrapper = "missing_wrapper",
    /// `]]>` was missing.
    MissingCdataEnd = "missing_cdata_end",
    /// An attribute without quotes.
    UnquotedAttribute = "unquoted_attribute",
    /// An `&` that starts no entity.
    BareAmpersand = "bare_ampersand",
    /// The call was in a code fence.
    Fenced = "fenced",
    /// The call was written in the format of another family.
    OtherFormat = "other_format",
    /// The tool's name was cleaned of what the model put around it.
    OddName = "odd_name",
    /// The schema wanted another type, and the text could only mean one value of it.
    Coerced = "coerced",
    /// `null` as text, where the schema allows null.
    NullText = "null_text",
    /// A single value, where the schema wants an array.
    WrappedInArray = "wrapped_in_array",
    /// A choice written in another case.
    FoldedEnum = "folded_enum",
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Repair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The repairs of one call, each once, in the order of their names.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Repairs(u64);

impl fmt::Debug for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Repair::as_str)).finish()
    }
}

impl Repairs {
    pub(crate) fn add(&mut self, repair: Repair) {
        self.0 |= 1 << repair as u32;
    }

    pub(crate) fn with(mut self, repair: Repair) -> Self {
        self.add(repair);
        self
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether nothing was mended.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this one was needed.
    #[must_use]
    pub const fn contains(self, repair: Repair) -> bool {
        self.0 & (1 << repair as u32) != 0
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Repair> {
        Repair::ALL.iter().copied().filter(move |repair| self.contains(*repair))
    }
}

impl Serialize for Repairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
