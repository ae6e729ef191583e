//! The repairs of lenient parsing. A call lists those it needed.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! repairs {
    ($($(#[$doc:meta])* $name:ident = $word:literal),* $(,)?) => {
        /// One repair on the way from a model's text to a call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Repair { $($(#[$doc])* $name),* }

        impl Repair {
            /// All repairs.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name in JSON.
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
    /// An unquoted key or word.
    Unquoted = "unquoted",
    /// `//` or `/* */`.
    Comment = "comment",
    /// `True`, `False`, `None` in JSON, or `true`, `false`, `null` in Python.
    ForeignLiteral = "foreign_literal",
    /// A number outside the grammar, such as `+1`, `.5` or `007`.
    OddNumber = "odd_number",
    /// An integer that does not fit 64 bits, kept as text so that no digit is lost. Callers should reject such calls.
    WideInteger = "wide_integer",
    /// A line break or another control character inside a string.
    RawControl = "raw_control",
    /// An unnecessary backslash.
    BadEscape = "bad_escape",
    /// Half of a surrogate pair, replaced.
    LoneSurrogate = "lone_surrogate",
    /// The last closing brackets were missing.
    MissingBracket = "missing_bracket",
    /// There was a closing bracket too many.
    ExtraBracket = "extra_bracket",
    /// A comma was missing.
    MissingComma = "missing_comma",
    /// A duplicate key; the last value counts. Other parsers may use the first one, so callers should reject such calls.
    DuplicateKey = "duplicate_key",
    /// Keys of another model family.
    OtherKey = "other_key",
    /// The call was nested in a `function` object.
    FunctionWrapper = "function_wrapper",
    /// The arguments were a string of JSON.
    StringArguments = "string_arguments",
    /// There were no arguments.
    MissingArguments = "missing_arguments",
    /// An argument without a name was assigned to the only required parameter.
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
    /// An `&` that does not start an entity.
    BareAmpersand = "bare_ampersand",
    /// The call was in a code fence.
    Fenced = "fenced",
    /// The call was in the format of another model family.
    OtherFormat = "other_format",
    /// The tool name had decoration around it.
    OddName = "odd_name",
    /// The schema requires another type, and the text has only one reading of that type.
    Coerced = "coerced",
    /// `null` as text, if the schema allows null.
    NullText = "null_text",
    /// A single value, if the schema requires an array.
    WrappedInArray = "wrapped_in_array",
    /// An enum value in another case.
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

/// The repairs of a call, sorted by name, without duplicates.
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

    /// Returns whether there are no repairs.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether this repair was needed.
    #[must_use]
    pub const fn contains(self, repair: Repair) -> bool {
        self.0 & (1 << repair as u32) != 0
    }

    /// All repairs of the call.
    pub fn iter(self) -> impl Iterator<Item = Repair> {
        Repair::ALL.iter().copied().filter(move |repair| self.contains(*repair))
    }
}

impl Serialize for Repairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
