//! The repairs of lenient parsing. Each call lists the repairs that it needed.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! repairs {
    ($($(#[$doc:meta])* $name:ident = $word:literal),* $(,)?) => {
        /// A mistake in a model's text that lenient parsing repaired.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Repair { $($(#[$doc])* $name),* }

        impl Repair {
            /// All repairs.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name of the repair in JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }
        }
    };
}

repairs! {
    /// A comma before a closing bracket was ignored.
    TrailingComma = "trailing_comma",
    /// A string was in single quotes.
    SingleQuotes = "single_quotes",
    /// A key or a string was not in quotes.
    Unquoted = "unquoted",
    /// A comment (`//` or `/* */`) was ignored.
    Comment = "comment",
    /// `True`, `False` or `None` was used in JSON, or `true`, `false` or `null` in Python.
    ForeignLiteral = "foreign_literal",
    /// A number was not valid JSON, such as `+1`, `.5` or `007`.
    OddNumber = "odd_number",
    /// An integer did not fit into 64 bits and became a string, so that no digit is lost. Callers should reject such calls.
    WideInteger = "wide_integer",
    /// A string contained a line break or another control character without an escape.
    RawControl = "raw_control",
    /// A backslash did not start a valid escape and was kept or removed.
    BadEscape = "bad_escape",
    /// Half of a surrogate pair was replaced with U+FFFD.
    LoneSurrogate = "lone_surrogate",
    /// The last closing brackets were missing.
    MissingBracket = "missing_bracket",
    /// A surplus closing bracket or closing tag was ignored.
    ExtraBracket = "extra_bracket",
    /// A comma between two members of an object was missing.
    MissingComma = "missing_comma",
    /// A key occurred twice, and the last value was used. Other parsers may use the first one, so callers should reject such calls.
    DuplicateKey = "duplicate_key",
    /// The tool name or the arguments were under a key of another format.
    OtherKey = "other_key",
    /// The call was nested in a `function` object.
    FunctionWrapper = "function_wrapper",
    /// The arguments were JSON in a string.
    StringArguments = "string_arguments",
    /// The arguments were missing and became an empty object.
    MissingArguments = "missing_arguments",
    /// An argument without a name was assigned to the only required parameter.
    PositionalArgument = "positional_argument",
    /// The marker that opens the section was missing.
    MissingOpen = "missing_open",
    /// The marker that closes the call or the section was missing.
    MissingClose = "missing_close",
    /// A tag that opens or closes a parameter was missing or doubled.
    MissingParameterClose = "missing_parameter_close",
    /// The element that encloses the parameters was missing.
    MissingWrapper = "missing_wrapper",
    /// The end of CDATA (`]]>`) was missing.
    MissingCdataEnd = "missing_cdata_end",
    /// The value of an attribute was not in quotes.
    UnquotedAttribute = "unquoted_attribute",
    /// An `&` did not start an entity and was kept.
    BareAmpersand = "bare_ampersand",
    /// The call was in a code fence.
    Fenced = "fenced",
    /// The call was in the format of another model family.
    OtherFormat = "other_format",
    /// The tool name had a prefix or suffix that was removed, such as `functions.`.
    OddName = "odd_name",
    /// A value was converted to the type that the schema requires, for example `"41"` to `41`.
    Coerced = "coerced",
    /// The string `"null"` was read as null, which the schema allows.
    NullText = "null_text",
    /// A single value was wrapped in an array, which the schema requires.
    WrappedInArray = "wrapped_in_array",
    /// An enum value was written in another case.
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

/// The set of repairs of a call. Iterates in the order of [`Repair::ALL`].
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

    /// Returns whether the set contains this repair.
    #[must_use]
    pub const fn contains(self, repair: Repair) -> bool {
        self.0 & (1 << repair as u32) != 0
    }

    /// Returns an iterator over the repairs.
    pub fn iter(self) -> impl Iterator<Item = Repair> {
        Repair::ALL.iter().copied().filter(move |repair| self.contains(*repair))
    }
}

impl Serialize for Repairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
