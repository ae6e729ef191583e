//! What a tool function gives back, told apart by its type: whether it is a `Result`, and what its error is.
//!
//! Generated code calls methods on references to a [`Probe`]. The compiler looks for a method on the most references first, so an
//! implementation for `&&Probe` wins over one for `Probe` where both apply ("autoref specialisation"). So an alias of `Result` is known as
//! a `Result`, and a type for which nothing fits is refused in the words of the trait that it lacks.

use std::any::Any;
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use schemars::JsonSchema;

use crate::any_error::{self, AnyError};
use crate::error::ToolError;
use crate::schema::Schema;

/// A type that is asked what it is.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// Asks a type.
    #[expect(clippy::new_without_default, reason = "only generated code makes one")]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// Asks the type of a value.
    #[must_use]
    pub const fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// A function that gives back a `Result`.
#[derive(Debug)]
pub struct Fallible<T, E>(PhantomData<fn() -> (T, E)>);

/// A function that gives back a value.
#[derive(Debug)]
pub struct Plain<T>(PhantomData<fn() -> T>);

/// The special case of return types.
pub trait ProbeResult {
    /// What is known of the return type.
    type Kind;
    /// Tells what the return type is.
    fn returned(&self) -> Self::Kind;
}

impl<T, E> ProbeResult for &Probe<Result<T, E>> {
    type Kind = Fallible<T, E>;
    fn returned(&self) -> Self::Kind {
        Fallible(PhantomData)
    }
}

/// The general case of return types.
pub trait ProbeValue {
    /// What is known of the return type.
    type Kind;
    /// Tells what the return type is.
    fn returned(&self) -> Self::Kind;
}

impl<T> ProbeValue for Probe<T> {
    type Kind = Plain<T>;
    fn returned(&self) -> Self::Kind {
        Plain(PhantomData)
    }
}

impl<T, E> Fallible<T, E> {
    /// What the function gave back, as a result.
    pub fn result(self, returned: Result<T, E>) -> Result<T, E> {
        returned
    }

    /// The schema of what it gives back when it does not fail.
    #[must_use]
    pub fn schema(self) -> Schema
    where
        T: JsonSchema,
    {
        Schema::of::<T>()
    }
}

impl<T> Plain<T> {
    /// What the function gave back, as a result.
    pub fn result(self, returned: T) -> Result<T, Infallible> {
        Ok(returned)
    }

    /// The schema of what it gives back.
    #[must_use]
    pub fn schema(self) -> Schema
    where
        T: JsonSchema,
    {
        Schema::of::<T>()
    }
}

/// What a tool function may fail with.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "not an error that a model could read",
    note = "the error implements `std::fmt::Display`: return a `String`, a `ToolError`, or your own error type",
    note = "with `helve::Result<T>` as the return type, `?` takes any error"
)]
pub trait Failure: Display + 'static {}

impl<E: Display + 'static> Failure for E {}

/// The error gives a view of the error inside it, as boxes and the types of `anyhow` and `eyre` do.
#[derive(Debug)]
pub struct Viewed;

/// The error can be converted, as nearly all can.
#[derive(Debug)]
pub struct Converted;

/// The error is known by its words alone.
#[derive(Debug)]
pub struct Shown;

/// The first choice for errors.
pub trait ProbeView {
    /// Tells how the error is read.
    fn failed(&self) -> Viewed {
        Viewed
    }
}

impl<E: AsRef<dyn Error + Send + Sync> + Into<AnyError>> ProbeView for &&Probe<E> {}

/// The second choice for errors.
pub trait ProbeConversion {
    /// Tells how the error is read.
    fn failed(&self) -> Converted {
        Converted
    }
}

impl<E: Into<AnyError>> ProbeConversion for &Probe<E> {}

/// The last choice for errors.
pub trait ProbeWords {
    /// Tells how the error is read.
    fn failed(&self) -> Shown {
        Shown
    }
}

impl<E> ProbeWords for Probe<E> {}

impl Viewed {
    /// The error as what the tool fails with.
    #[must_use]
    pub fn error(self, error: impl AsRef<dyn Error + Send + Sync> + Into<AnyError>) -> ToolError {
        // Looked for before the conversion, which hides it inside a type of `anyhow` or `eyre`.
        any_error::known(error.as_ref()).unwrap_or_else(|| error.into().into())
    }
}

impl Converted {
    /// The error as what the tool fails with.
    #[must_use]
    pub fn error(self, error: impl Into<AnyError>) -> ToolError {
        error.into().into()
    }
}

impl Shown {
    /// The error as what the tool fails with.
    #[must_use]
    pub fn error<E: Failure>(self, error: E) -> ToolError {
        let boxed = (&error as &dyn Any).downcast_ref::<Box<dyn Error>>();
        boxed.and_then(|error| any_error::known(&**error)).unwrap_or_else(|| ToolError::failed(any_error::words(error)))
    }
}
