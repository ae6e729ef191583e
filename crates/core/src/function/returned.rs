//! The return type of a tool function: whether it is a `Result`, and how its error converts.
//!
//! Generated code calls methods on references to a [`Probe`]. Method lookup tries the most references first, so an implementation for
//! `&&Probe` wins over one for `Probe` if both apply ("autoref specialisation"). That recognises aliases of `Result`, and reports an
//! unsupported type with the message of the trait that it lacks.

use std::any::Any;
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use schemars::JsonSchema;

use crate::any_error::{self, AnyError};
use crate::error::ToolError;
use crate::schema::Schema;

/// A probe for the properties of a type.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// A probe for a type.
    #[expect(clippy::new_without_default, reason = "only generated code creates it")]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// A probe for the type of a value.
    #[must_use]
    pub const fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// Return types that are a `Result`.
pub trait ProbeResult<T, E> {
    /// The returned value as a result.
    ///
    /// # Errors
    /// The error of the function.
    fn result(&self, returned: Result<T, E>) -> Result<T, E> {
        returned
    }

    /// The schema of the successful value.
    fn schema(&self) -> Schema
    where
        T: JsonSchema,
    {
        Schema::of::<T>()
    }
}

impl<T, E> ProbeResult<T, E> for &Probe<Result<T, E>> {}

/// All other return types.
pub trait ProbeValue<T> {
    /// The returned value as a result.
    ///
    /// # Errors
    /// None.
    fn result(&self, returned: T) -> Result<T, Infallible> {
        Ok(returned)
    }

    /// The schema of the value.
    fn schema(&self) -> Schema
    where
        T: JsonSchema,
    {
        Schema::of::<T>()
    }
}

impl<T> ProbeValue<T> for Probe<T> {}

/// An error of a tool function.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "has no text for the model",
    note = "the error implements `std::fmt::Display`: return a `String`, a `ToolError`, or your own error type",
    note = "with `helve::Result<T>` as the return type, `?` converts any error"
)]
pub trait Failure: Display + 'static {}

impl<E: Display + 'static> Failure for E {}

/// First choice: the error has a view of the error inside it, like boxes and the types of `anyhow` and `eyre`.
pub trait ProbeView<E: AsRef<dyn Error + Send + Sync> + Into<AnyError>> {
    /// Converts the error.
    fn error(&self, error: E) -> ToolError {
        // Must come before the conversion, which hides the inner error inside a type of `anyhow` or `eyre`.
        any_error::known(error.as_ref()).unwrap_or_else(|| error.into().into())
    }
}

impl<E: AsRef<dyn Error + Send + Sync> + Into<AnyError>> ProbeView<E> for &&Probe<E> {}

/// Second choice: the error converts into [`AnyError`], like nearly all errors.
pub trait ProbeConversion<E: Into<AnyError>> {
    /// Converts the error.
    fn error(&self, error: E) -> ToolError {
        error.into().into()
    }
}

impl<E: Into<AnyError>> ProbeConversion<E> for &Probe<E> {}

/// Last choice: the error only has a text.
pub trait ProbeText<E> {
    /// Converts the error.
    fn error(&self, error: E) -> ToolError
    where
        E: Failure,
    {
        let boxed = (&error as &dyn Any).downcast_ref::<Box<dyn Error>>();
        boxed.and_then(|error| any_error::known(&**error)).unwrap_or_else(|| ToolError::failed(any_error::words(error)))
    }
}

impl<E> ProbeText<E> for Probe<E> {}
