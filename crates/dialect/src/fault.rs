//! The mistakes that make a call invalid.

use std::fmt;

use serde::{Serialize, Serializer};

/// The kind of mistake in an invalid call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The message ended in the middle of the call.
    Incomplete,
    /// The text violates the format's grammar.
    Syntax,
    /// The call does not name a tool.
    NoName,
    /// The arguments are not an object.
    NotAnObject,
    /// The brackets or elements are nested too deep.
    TooDeep,
    /// A key occurs twice, which only lenient parsing accepts.
    DuplicateKey,
    /// The model wrote program code instead of a call.
    Code,
    /// The message has too many calls.
    TooMany,
    /// The arguments contain too many values.
    TooLarge,
}

impl FaultKind {
    /// Returns the name of the kind in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Syntax => "syntax",
            Self::NoName => "no_name",
            Self::NotAnObject => "not_an_object",
            Self::TooDeep => "too_deep",
            Self::DuplicateKey => "duplicate_key",
            Self::Code => "code",
            Self::TooMany => "too_many",
            Self::TooLarge => "too_large",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FaultKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A mistake, with a message that tells the model what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub kind: FaultKind,
    pub error: String,
}

impl Fault {
    pub fn new(kind: FaultKind, error: impl Into<String>) -> Self {
        Self { kind, error: error.into() }
    }

    pub fn syntax(error: impl Into<String>) -> Self {
        Self::new(FaultKind::Syntax, error)
    }

    /// Returns the fault for a duplicate key.
    pub fn twice(key: &str) -> Self {
        Self::new(FaultKind::DuplicateKey, format!("duplicate key {key:?}; write it once"))
    }

    /// Returns the fault for an integer that would lose digits as a number.
    pub fn wide(integer: &str) -> Self {
        let shown: String = integer.chars().take(40).collect();
        Self::syntax(format!("the integer {shown} does not fit into 64 bits; send it as a string, or with an exponent"))
    }

    /// Returns the fault for a call that is incomplete at the end of the message.
    pub fn cut() -> Self {
        Self::new(FaultKind::Incomplete, "the message ended before the call was complete, so it was not run; write the whole call again")
    }
}
