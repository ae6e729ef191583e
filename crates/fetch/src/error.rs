//! Errors of HTTP requests. Their messages show only the origin of a URL, because paths and queries may contain secrets.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::Url;
use rustls::CertificateError;

use crate::address::{self, Refusal};

/// The reason in [`FetchError::Unreachable`] if connecting timed out.
pub(crate) const TIMED_OUT: &str = "connection timed out";

/// Why a request has no response, or no complete one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is invalid.
    #[error("invalid URL: {reason}")]
    BadUrl {
        /// What is wrong with the URL.
        reason: String,
    },
    /// The address of the request, or of a redirect, is not allowed. Nothing was sent to it.
    #[error("address not allowed: {0}")]
    Refused(#[from] Refusal),
    /// No connection could be made: the DNS lookup failed, the connection was refused or timed out, or the certificate is not trusted.
    /// Nothing was sent.
    #[error("{origin} cannot be reached: {reason}")]
    Unreachable {
        /// Scheme, host and port of the server.
        origin: String,
        /// The reason from DNS, TCP or TLS.
        reason: String,
    },
    /// The request took longer than its timeout.
    #[error("request to {origin} timed out after {after:?}")]
    Timeout {
        /// Scheme, host and port of the request.
        origin: String,
        /// The timeout that was exceeded.
        after: Duration,
    },
    /// The server closed the connection before its response was complete. The server may have carried out the request.
    #[error("{origin} closed the connection before the response was complete")]
    Closed {
        /// Scheme, host and port of the server.
        origin: String,
    },
    /// The response is larger than allowed. The client stopped reading it.
    #[error("the response from {origin} is larger than {limit} bytes")]
    TooLarge {
        /// Scheme, host and port of the server.
        origin: String,
        /// Maximum number of bytes.
        limit: u64,
    },
    /// The number of redirects exceeded the limit.
    #[error("too many redirects: {origin} redirected more than {limit} times")]
    TooManyRedirects {
        /// Scheme, host and port of the request.
        origin: String,
        /// Maximum number of redirects.
        limit: u8,
    },
    /// The response is not valid HTTP: broken framing, too many headers, an invalid redirect.
    #[error("invalid HTTP response from {origin}: {reason}")]
    Protocol {
        /// Scheme, host and port of the server.
        origin: String,
        /// What is wrong with the response.
        reason: String,
    },
    /// The HTTP client could not be created.
    #[error("HTTP client setup failed: {reason}")]
    Setup {
        /// Why the client could not be created.
        reason: String,
    },
}

impl FetchError {
    /// Converts an error of reqwest that occurred in a request to `url`.
    pub(crate) fn of(error: &reqwest::Error, url: &Url) -> Self {
        let origin = address::origin(url);
        if let Some(refusal) = chain(error).find_map(|cause| cause.downcast_ref::<Refusal>()) {
            return Self::Refused(refusal.clone());
        }
        // The outer errors repeat the URL with its query; the innermost one says what happened.
        let reason = chain(error).last().filter(|cause| !cause.is::<reqwest::Error>()).map_or_else(String::new, describe);
        if error.is_builder() {
            return Self::BadUrl { reason };
        }
        if error.is_connect() {
            let reason = if error.is_timeout() { TIMED_OUT.to_owned() } else { reason };
            return Self::Unreachable { origin, reason };
        }
        if chain(error).any(is_closed) { Self::Closed { origin } } else { Self::Protocol { origin, reason } }
    }

    /// Converts an error of hyper that occurred on a connection to `origin`.
    pub(crate) fn of_hyper(error: &hyper::Error, origin: String) -> Self {
        if error.is_canceled() || error.is_closed() || chain(error).any(is_closed) {
            return Self::Closed { origin };
        }
        Self::Protocol { origin, reason: chain(error).last().map_or_else(String::new, ToString::to_string) }
    }
}

/// Returns an iterator over an error and its causes, outermost first.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause| (*cause).source())
}

/// Describes a connection error in standard terms. For an unknown issuer, the most frequent TLS error, rustls shows only the name of
/// the variant.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "TLS certificate verification failed: unknown issuer".to_owned()
        }
        Some(rustls::Error::InvalidCertificate(reason)) => format!("TLS certificate verification failed: {reason}"),
        Some(other) => format!("TLS handshake failed: {other}"),
        None => error.to_string(),
    }
}

/// Returns whether an error means that the connection was closed or lost.
fn is_closed(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let by_http = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message);
    let by_system = cause
        .downcast_ref::<io::Error>()
        .is_some_and(|error| matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | TimedOut | UnexpectedEof));
    by_http || by_system
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_tls_are_named_by_their_standard_terms() {
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert_eq!(describe(&io::Error::other(unknown)), "TLS certificate verification failed: unknown issuer");
        let expired = rustls::Error::InvalidCertificate(CertificateError::Expired);
        assert!(describe(&io::Error::other(expired)).starts_with("TLS certificate verification failed: "));
        assert!(describe(&io::Error::other(rustls::Error::DecryptError)).starts_with("TLS handshake failed: "));
        assert!(describe(&io::Error::from_raw_os_error(111)).contains("Connection refused"));
    }
}
