//! The error of tools that use `?` on everything.

use std::error::Error;
use std::{fmt, iter};

use crate::error::{ErrorKind, ToolError};

/// A result whose error can come from anything: what a tool with several sources of errors returns.
///
/// ```
/// fn port(text: &str) -> helve_core::Result<u16> {
///     let (_, port) = text.split_once(':').ok_or("there is no port")?;
///     Ok(port.parse()?)
/// }
/// assert!(port("localhost:80").is_ok() && port("localhost").is_err() && port("localhost:x").is_err());
/// ```
pub type Result<T, E = AnyError> = std::result::Result<T, E>;

/// Any error, as what a tool fails with. `?` makes it from errors, texts and boxed errors.
///
/// A [`ToolError`] keeps its kind, also where it is the [`source`](Error::source) of another error. Everything else is
/// [`ErrorKind::Failed`]. As in `anyhow`, the type itself is not an [`Error`], because `?` could not take every error otherwise.
pub struct AnyError(ToolError);

impl AnyError {
    /// The kind that the call fails with.
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

/// What `main` prints: the message, and below it the causes.
impl fmt::Debug for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        chain(&self.0).skip(1).try_for_each(|cause| write!(f, "\n  caused by: {cause}"))
    }
}

/// The first [`ToolError`] in the chain of an error, in the words of the whole.
pub(crate) fn known(error: &(dyn Error + 'static)) -> Option<ToolError> {
    let known = chain(error).find_map(|link| link.downcast_ref::<ToolError>())?;
    // The kind is told beside the message, and not once more inside it.
    let message = words(error).replace(&known.to_string(), known.message());
    let message = if message.contains(known.message()) { message } else { format!("{message}: {}", known.message()) };
    Some(known.clone().with_message(message))
}

/// What an error says. The alternate form, because some error types then tell their causes too.
pub(crate) fn words(error: impl fmt::Display) -> String {
    format!("{error:#}")
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |link| (*link).source())
}

/// What is below an error whose own words are the message already.
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
