//! Why a request to a server has no result.

use std::time::Duration;

use helve_core::printable;
use helve_fetch::FetchError;
use helve_mcp_wire::RpcError;

/// How much of a server's text an error keeps.
const MAX_EXCERPT: usize = 500;

/// Why a request to a server has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server responded with a JSON-RPC error.
    #[error("{} ({})", excerpt(&.0.message), .0.code)]
    Rpc(RpcError),
    /// Nothing was sent, because there is no connection.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The connection ended after the request was sent. Whether it took effect is unknown.
    #[error("connection to the server lost: {0}")]
    Disconnected(String),
    /// The server no longer knows the session. It did not process the request.
    #[error("the server's session has expired")]
    SessionExpired,
    /// The server did not respond in time.
    #[error("request timed out after {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The response is larger than allowed.
    #[error("the server's response is larger than {0} bytes")]
    TooLarge(usize),
    /// The server broke the protocol.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// An HTTP status without a JSON-RPC response.
    #[error("the server responded with HTTP {status}{}{body}", if .body.is_empty() { "" } else { ": " })]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body, made safe to show.
        body: String,
    },
    /// The server requires a login.
    #[error("login required: {0}")]
    LoginRequired(String),
    /// The server's program could not be started.
    #[error("{0}")]
    NotStarted(String),
    /// A file of the server's program changed since it was loaded. Nothing was started.
    #[error("{0}")]
    ScriptChanged(String),
    /// The tool's definition is not the approved one. Nothing was sent.
    #[error("the server changed this tool, and the new definition is not approved")]
    NotApproved,
    /// The caller cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
}

impl RequestError {
    /// An HTTP status, with the beginning of the body.
    pub(crate) fn status(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_EXCERPT)]);
        Self::Status { status, body: excerpt(&text) }
    }

    /// Returns whether the connection cannot be used any more.
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

/// Untrusted text on one short line.
pub(crate) fn excerpt(text: &str) -> String {
    printable::escape_line(&printable::shorten(text.trim(), MAX_EXCERPT))
}
