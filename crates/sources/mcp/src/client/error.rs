//! The error of a request to a server.

use std::time::Duration;

use helve_core::printable;
use helve_fetch::FetchError;
use helve_mcp_wire::RpcError;

/// Maximum number of characters of a server's text in an error.
const MAX_EXCERPT: usize = 500;

/// Why a request to a server failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server responded with a JSON-RPC error.
    #[error("{} ({})", excerpt(&.0.message), .0.code)]
    Rpc(RpcError),
    /// The request was not sent, because there is no connection to the server.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The connection ended after the request was sent. It is unknown whether the request took effect.
    #[error("connection to the server lost: {0}")]
    Disconnected(String),
    /// The server no longer knows the session, and did not process the request.
    #[error("the server's session has expired")]
    SessionExpired,
    /// The server did not respond in time.
    #[error("request timed out after {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The server's response is larger than this limit in bytes.
    #[error("the server's response is larger than {0} bytes")]
    TooLarge(usize),
    /// The server violated the protocol.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The server responded with an HTTP error status and no JSON-RPC response.
    #[error("the server responded with HTTP {status}{}{body}", if .body.is_empty() { "" } else { ": " })]
    Status {
        /// The HTTP status code.
        status: u16,
        /// The beginning of the response body, escaped.
        body: String,
    },
    /// The server requires a login.
    #[error("login required: {0}")]
    LoginRequired(String),
    /// The server's program could not be started.
    #[error("{0}")]
    NotStarted(String),
    /// A file of the server's program changed after the definition was loaded, so the program was not started.
    #[error("{0}")]
    ScriptChanged(String),
    /// The tool's definition is not the approved one, so the request was not sent.
    #[error("the server changed this tool, and the new definition is not approved")]
    NotApproved,
    /// The caller cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
}

impl RequestError {
    /// Creates the error for an HTTP error status, with the beginning of the response body.
    pub(crate) fn status(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_EXCERPT)]);
        Self::Status { status, body: excerpt(&text) }
    }

    /// Returns whether the connection can no longer be used after this error.
    pub(crate) fn ends_connection(&self) -> bool {
        matches!(self, Self::Disconnected(_) | Self::Unreachable(_) | Self::SessionExpired)
    }
}

impl From<FetchError> for RequestError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Timeout { after, .. } => Self::TimedOut(after),
            FetchError::TooLarge { limit, .. } => Self::TooLarge(usize::try_from(limit).unwrap_or(usize::MAX)),
            FetchError::Closed { .. } => Self::Disconnected(error.to_string()),
            FetchError::Protocol { .. } => Self::Protocol(error.to_string()),
            other => Self::Unreachable(other.to_string()),
        }
    }
}

/// Shortens untrusted text and escapes it to one line.
pub(crate) fn excerpt(text: &str) -> String {
    printable::escape_line(&printable::shorten(text.trim(), MAX_EXCERPT))
}
