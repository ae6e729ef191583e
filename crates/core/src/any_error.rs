//! The error type [`AnyError`], for tools that use `?` on errors of any type.

use std::error::Error;
use std::{fmt, iter};

use crate::error::{ErrorKind, ToolError};

/// The result of a tool that fails with errors of different types.
///
/// ```
/// fn port(text: &str) -> helve_core::Result<u16> {
///     let (_, port) = text.split_once(':').ok_or("there is no port")?;
///     Ok(port.parse()?)
/// }
/// assert!(port("localhost:80").is_ok() && port("localhost").is_err() && port("localhost:x").is_err());
/// ```
pub type Result<T, E = AnyError> = std::result::Result<T, E>;

/// An error of any type in a tool. `?` converts errors, strings and boxed errors into it.
///
/// A [`ToolError`] keeps its kind, even as the [`source`](Error::source) of another error. All other errors are [`ErrorKind::Failed`].
/// Like `anyhow::Error`, `AnyError` does not implement [`Error`]; otherwise `?` could not convert every error.
pub struct AnyError(ToolError);

impl AnyError {
    /// Returns the kind of error that the call fails with.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for AnyError {
    fn from(error: E) -> Self {
        let error = match error.into().downcast::<ToolError>() {
            Ok(known) => return Self(*known),
            Err(error) => error,
        };
        if let Some(known) = known(&*error) {
            return Self(known);
        }
        let failed = ToolError::failed(words(&*error));
        Self(if error.source().is_some() { failed.caused_by(Causes(error)) } else { failed })
    }
}

impl From<AnyError> for ToolError {
    fn from(error: AnyError) -> Self {
        error.0
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

/// Writes the message and the causes below it, for a `main` that returns the error.
impl fmt::Debug for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        chain(&self.0).skip(1).try_for_each(|cause| write!(f, "\n  caused by: {cause}"))
    }
}

/// Returns the first [`ToolError`] in a chain of errors, with the message of the whole chain.
pub(crate) fn known(error: &(dyn Error + 'static)) -> Option<ToolError> {
    let known = chain(error).find_map(|link| link.downcast_ref::<ToolError>())?;
    // `Display` writes the kind before the message, so the message must not contain the kind again.
    let message = words(error).replace(&known.to_string(), known.message());
    let message = if message.contains(known.message()) { message } else { format!("{message}: {}", known.message()) };
    Some(known.clone().with_message(message))
}

/// Returns the message of an error in the alternate form, in which some error types include their causes.
pub(crate) fn words(error: impl fmt::Display) -> String {
    format!("{error:#}")
}

/// Returns an iterator over an error and its causes.
pub(crate) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |link| (*link).source())
}

/// The causes of an error whose own message is already the message of the [`ToolError`].
struct Causes(Box<dyn Error + Send + Sync>);

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source().map_or(Ok(()), |cause| fmt::Display::fmt(cause, f))
    }
}

impl fmt::Debug for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Causes {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()?.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the table was not booked")]
    struct Booking(#[source] Box<dyn Error + Send + Sync>);

    fn busy() -> ToolError {
        ToolError::new(ErrorKind::RateLimited, "too many").with("limit", 3.into())
    }

    #[test]
    fn a_tool_error_keeps_its_kind_and_details_wherever_it_is() {
        let boxed: Box<dyn Error + Send + Sync> = busy().into();
        for (error, message) in [
            (AnyError::from(busy()), "too many"),
            (AnyError::from(boxed), "too many"),
            (AnyError::from(Booking(busy().into())), "the table was not booked: too many"),
            (AnyError::from(std::io::Error::other(Booking(busy().into()))), "the table was not booked: too many"),
        ] {
            let error = ToolError::from(error);
            assert_eq!((error.kind(), error.message()), (ErrorKind::RateLimited, message));
            assert_eq!(error.details()["limit"], 3);
        }
    }

    #[test]
    fn other_errors_are_failures_and_keep_their_causes_for_operators() {
        let error = AnyError::from(Booking(Booking("the kitchen is closed".into()).into()));
        assert_eq!(
            format!("{error:?}"),
            "the table was not booked\n  caused by: the table was not booked\n  caused by: the kitchen is closed"
        );
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Failed, "the table was not booked"));
        assert!(ToolError::from(AnyError::from("no")).source().is_none());
    }

    #[test]
    fn results_are_small() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
