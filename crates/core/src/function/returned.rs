//! Handles the return type of a tool function: detects whether it is a `Result`, and converts its error.
//!
//! Generated code calls methods on references to a [`Probe`]. Method lookup tries the most references first, so an implementation for
//! `&&Probe` is preferred to one for `Probe` if both apply ("autoref specialisation"). This recognises aliases of `Result`, and for an
//! unsupported type the compiler reports the trait that the type lacks.

use std::any::Any;
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use schemars::JsonSchema;

use crate::any_error::{self, AnyError};
use crate::error::ToolError;
use crate::schema::Schema;

/// A probe that finds out, through method lookup, which traits a type implements.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// Creates a probe for a type.
    #[expect(clippy::new_without_default, reason = "only generated code creates it")]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// Creates a probe for the type of a value.
    #[must_use]
    pub const fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// Implemented for probes of return types that are a `Result`.
pub trait ProbeResult<T, E> {
    /// Returns the value of the function unchanged.
    ///
    /// # Errors
    /// The error of the function, unchanged.
    fn result(&self, returned: Result<T, E>) -> Result<T, E> {
        returned
    }

    /// Returns the schema of the successful value.
    fn schema(&self) -> Schema
    where
        T: JsonSchema,
    {
        Schema::of::<T>()
    }
}

impl<T, E> ProbeResult<T, E> for &Probe<Result<T, E>> {}

/// Implemented for probes of all other return types.
pub trait ProbeValue<T> {
    /// Wraps the value of the function in `Ok`.
    ///
    /// # Errors
    /// Never fails.
    fn result(&self, returned: T) -> Result<T, Infallible> {
        Ok(returned)
    }

    /// Returns the schema of the value.
    fn schema(&self) -> Schema
    where
        T: JsonSchema,
    {
        Schema::of::<T>()
    }
}

impl<T> ProbeValue<T> for Probe<T> {}

/// An error type that a tool function can return: a type with a text for the model.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "has no text for the model",
    note = "the error implements `std::fmt::Display`: return a `String`, a `ToolError`, or your own error type",
    note = "with `helve::Result<T>` as the return type, `?` converts any error"
)]
pub trait Failure: Display + 'static {}

impl<E: Display + 'static> Failure for E {}

/// First choice: the error type gives access to the error inside it, like boxes and the types of `anyhow` and `eyre`.
pub trait ProbeView<E: AsRef<dyn Error + Send + Sync> + Into<AnyError>> {
    /// Converts the error into a [`ToolError`].
    fn error(&self, error: E) -> ToolError {
        // Look inside before converting: `anyhow` and `eyre` hide the inner error in the converted one.
        any_error::known(error.as_ref()).unwrap_or_else(|| error.into().into())
    }
}

impl<E: AsRef<dyn Error + Send + Sync> + Into<AnyError>> ProbeView<E> for &&Probe<E> {}

/// Second choice: the error type converts into [`AnyError`], as nearly all errors do.
pub trait ProbeConversion<E: Into<AnyError>> {
    /// Converts the error into a [`ToolError`].
    fn error(&self, error: E) -> ToolError {
        error.into().into()
    }
}

impl<E: Into<AnyError>> ProbeConversion<E> for &Probe<E> {}

/// Last choice: the error type only implements `Display`.
pub trait ProbeText<E> {
    /// Converts the error into a [`ToolError`].
    fn error(&self, error: E) -> ToolError
    where
        E: Failure,
    {
        let boxed = (&error as &dyn Any).downcast_ref::<Box<dyn Error>>();
        boxed.and_then(|error| any_error::known(&**error)).unwrap_or_else(|| ToolError::failed(any_error::words(error)))
    }
}

impl<E> ProbeText<E> for Probe<E> {}
