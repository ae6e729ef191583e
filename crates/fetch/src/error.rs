//! What can go wrong with a fetch, by variant. No text of it holds more of an address than its origin.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::Url;

use crate::address::{self, Refusal};

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address cannot be read.
    #[error("this is not an address that can be fetched: {reason}")]
    BadUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// The address, or one that a redirect led to, must not be reached. Nothing was sent to it.
    #[error("not fetched: {0}")]
    Refused(#[from] Refusal),
    /// There is no connection: no such name, nobody listens, or no trust in its certificate. Nothing was sent.
    #[error("{origin} cannot be reached: {reason}")]
    Unreachable {
        /// Scheme, host and port.
        origin: String,
        /// What the system says.
        reason: String,
    },
    /// The whole exchange took too long.
    #[error("{origin} did not response within {after:?}")]
    Timeout {
        /// Scheme, host and port of the request.
        origin: String,
        /// How long was waited.
        after: Duration,
    },
    /// The other side hung up before its response was complete. It may have done what it was asked.
    #[error("{origin} closed the connection before its response was complete")]
    Closed {
        /// Scheme, host and port.
        origin: String,
    },
    /// The response is larger than allowed. The rest of it was not read.
    #[error("the response of {origin} is larger than {limit} bytes")]
    TooLarge {
        /// Scheme, host and port.
        origin: String,
        /// What was allowed.
        limit: u64,
    },
    /// One redirect more than allowed.
    #[error("{origin} redirected more than {limit} times")]
    TooManyRedirects {
        /// Scheme, host and port of the request.
        origin: String,
        /// What was allowed.
        limit: u8,
    },
    /// The response is not HTTP as it should be: broken framing, too many headers, a redirect to nowhere.
    #[error("{origin} does not speak proper HTTP: {reason}")]
    Protocol {
        /// Scheme, host and port.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// The client could not be made.
    #[error("there is no HTTP client: {reason}")]
    Setup {
        /// What is wrong.
        reason: String,
    },
}

impl FetchError {
    /// What a failed exchange with the host of this address means.
    pub(crate) fn of(error: &reqwest::Error, url: &Url) -> Self {
        let origin = address::origin(url);
        let chain = || std::iter::successors(Some(error as &(dyn Error + 'static)), |cause| (*cause).source());
        if let Some(refusal) = chain().find_map(|cause| cause.downcast_ref::<Refusal>()) {
            return Self::Refused(refusal.clone());
        }
        // The outer errors repeat the address with its query; the innermost one says what happened.
        let reason = chain().last().filter(|cause| !cause.is::<reqwest::Error>()).map_or_else(String::new, ToString::to_string);
        if error.is_builder() {
            return Self::BadUrl { reason };
        }
        if error.is_connect() {
            let reason = if error.is_timeout() { "nobody answers there".to_owned() } else { reason };
            return Self::Unreachable { origin, reason };
        }
        if chain().any(hung_up) { Self::Closed { origin } } else { Self::Protocol { origin, reason } }
    }
}

impl FetchError {
    /// What a failure of a connection to this origin means.
    pub(crate) fn of_hyper(error: &hyper::Error, origin: String) -> Self {
        let chain = || std::iter::successors(Some(error as &(dyn Error + 'static)), |cause| (*cause).source());
        if error.is_canceled() || error.is_closed() || chain().any(hung_up) {
            return Self::Closed { origin };
        }
        Self::Protocol { origin, reason: chain().last().map_or_else(String::new, ToString::to_string) }
    }
}

fn hung_up(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let by_http = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message);
    let by_system = cause
        .downcast_ref::<io::Error>()
        .is_some_and(|error| matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | TimedOut | UnexpectedEof));
    by_http || by_system
}
