//! Why a request to a server has no result.

use std::time::Duration;

use helve_core::printable;
use helve_fetch::FetchError;
use helve_mcp_wire::RpcError;

/// How much of what a server says in passing is kept.
const SAID: usize = 500;

/// Why a request to a server has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The server says no, in the words of the protocol.
    #[error("{} ({})", excerpt(&.0.message), .0.code)]
    Refused(RpcError),
    /// Nothing was sent, because there is no connection.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The connection ended after the request was sent; nobody knows what became of it.
    #[error("the server went away: {0}")]
    Gone(String),
    /// The session is not known to the server any more; the request was not looked at.
    #[error("the server has forgotten the session")]
    Forgotten,
    /// Nothing came for too long.
    #[error("the server did not answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// The answer is larger than may be.
    #[error("the server's answer is larger than {0} bytes")]
    TooLarge(usize),
    /// What came is not the protocol.
    #[error("the server does not speak the protocol: {0}")]
    Protocol(String),
    /// A status of HTTP, without an answer in the words of the protocol.
    #[error("the server answers with HTTP {status}{}", said_after(.said))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of what it says, made safe to show.
        said: String,
    },
    /// The server wants to know who asks, and that is not known.
    #[error("the server wants a login: {0}")]
    Unauthorised(String),
    /// The program of the server could not be started.
    #[error("{0}")]
    NotStarted(String),
    /// A file of the server's program is not the one that was loaded; nothing was started.
    #[error("{0}")]
    Changed(String),
    /// The tool is not the one that someone agreed to; nothing was sent.
    #[error("the server has changed this tool, and nobody has agreed to it yet")]
    Unpinned,
    /// Whoever asked does not want to know any more.
    #[error("the request was cancelled")]
    Cancelled,
}

fn said_after(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

impl Trouble {
    /// A status, with the beginning of the body beside it.
    pub(crate) fn status(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&body[..body.len().min(4 * SAID)]);
        Self::Status { status, said: excerpt(&text) }
    }

    /// Whether the connection is of no use any more.
    pub(crate) fn ends_connection(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Unreachable(_) | Self::Forgotten)
    }
}

impl From<FetchError> for Trouble {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Timeout { after, .. } => Self::Late(after),
            FetchError::TooLarge { limit, .. } => Self::TooLarge(usize::try_from(limit).unwrap_or(usize::MAX)),
            FetchError::Closed { .. } => Self::Gone(error.to_string()),
            FetchError::Protocol { .. } => Self::Protocol(error.to_string()),
            other => Self::Unreachable(other.to_string()),
        }
    }
}

/// A stranger's text on one line, not too long.
pub(crate) fn excerpt(text: &str) -> String {
    printable::escape_line(&printable::shorten(text.trim(), SAID))
}
