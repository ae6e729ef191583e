//! Determines the era of a server from its response to the first request.
//!
//! A client that supports both eras sends `server/discover` first. Legacy servers respond to it in many ways, none of them standardised,
//! so every response that is not clearly modern means the legacy era. Connection failures do not indicate an era.

use serde_json::Value;

use crate::{CODES, Era, RpcError};

/// The response of a server to a probe (`server/discover`).
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeResponse {
    /// The result of the request.
    Result(Value),
    /// A JSON-RPC error, with any HTTP status.
    Error(RpcError),
    /// An HTTP status without a JSON-RPC message.
    Status(u16),
    /// The server did not respond in time.
    TimedOut,
}

/// The next step after a probe.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeOutcome {
    /// Continue in the modern era: the server supports it.
    Modern {
        /// The newest modern version that both sides support.
        version: &'static str,
        /// The result of `server/discover`.
        found: Value,
    },
    /// Continue in the legacy era: send `initialize`.
    Legacy,
    /// Restart the server, which may still be busy with the probe, then send `initialize`.
    LegacyAfterRestart,
    /// Send the probe once more.
    Retry,
    /// Log in: the server requires it.
    LoginRequired,
    /// Give up, for this reason: the server cannot be used.
    Fail(String),
}

/// Determines the era of one server.
#[derive(Debug, Default)]
pub struct Probe {
    retried: bool,
}

impl Probe {
    /// Creates a probe that has not seen a response yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Evaluates the response to a probe. Returns [`ProbeOutcome::Retry`] at most once.
    pub fn evaluate(&mut self, response: ProbeResponse) -> ProbeOutcome {
        match response {
            ProbeResponse::Result(found) => discovered(found),
            ProbeResponse::Error(error) if error.code == CODES.version => self.other_version(&error),
            ProbeResponse::Error(error) if [CODES.headers, CODES.capability].contains(&error.code) => ProbeOutcome::Fail(error.to_string()),
            ProbeResponse::Error(_) | ProbeResponse::Status(400 | 402 | 404..=499) => ProbeOutcome::Legacy,
            ProbeResponse::Status(401 | 403) => ProbeOutcome::LoginRequired,
            ProbeResponse::Status(status) => ProbeOutcome::Fail(format!("the server responded with HTTP {status}")),
            ProbeResponse::TimedOut => ProbeOutcome::LegacyAfterRestart,
        }
    }

    /// Evaluates the error of a modern server that does not accept the requested version.
    fn other_version(&mut self, error: &RpcError) -> ProbeOutcome {
        let supported = error.data.as_ref().and_then(|data| data.get("supported"));
        let named: Vec<&str> = supported.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let knows = |era: Era| named.iter().any(|version| Era::of(version) == Some(era));
        // A server that lists the requested version as supported may accept it the second time.
        if knows(Era::Modern) && !std::mem::replace(&mut self.retried, true) {
            return ProbeOutcome::Retry;
        }
        if knows(Era::Legacy) {
            return ProbeOutcome::Legacy;
        }
        ProbeOutcome::Fail(match named.join(", ") {
            none if none.is_empty() => error.to_string(),
            versions => format!("the server supports only {versions}"),
        })
    }
}

fn discovered(found: Value) -> ProbeOutcome {
    let supported = found.get("supportedVersions").and_then(Value::as_array);
    let versions = supported.into_iter().flatten().filter_map(Value::as_str);
    let modern = versions.filter_map(|version| crate::VERSIONS.iter().find(|(known, era)| *known == version && *era == Era::Modern));
    match modern.map(|(version, _)| *version).max() {
        Some(version) => ProbeOutcome::Modern { version, found },
        // Some servers respond to any method; others list only legacy versions.
        None => ProbeOutcome::Legacy,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(code: i64, data: Option<Value>) -> ProbeResponse {
        ProbeResponse::Error(RpcError { code, message: "no".to_owned(), data })
    }

    #[test]
    fn a_server_of_the_newer_era_says_so() {
        let found = json!({"supportedVersions": ["2099-01-01", "2026-07-28"], "capabilities": {}});
        assert_eq!(Probe::new().evaluate(ProbeResponse::Result(found.clone())), ProbeOutcome::Modern { version: "2026-07-28", found });
    }

    #[test]
    fn whatever_else_is_said_means_the_older_one() {
        for response in [
            error(-32601, None),
            error(-32600, None),
            error(-32000, None),
            error(-32602, None),
            ProbeResponse::Result(json!({})),
            ProbeResponse::Result(json!(null)),
            ProbeResponse::Result(json!({"supportedVersions": ["2025-11-25"]})),
            ProbeResponse::Status(400),
            ProbeResponse::Status(404),
            ProbeResponse::Status(405),
            error(-32022, Some(json!({"supported": ["2025-11-25", "2024-11-05"]}))),
        ] {
            assert_eq!(Probe::new().evaluate(response.clone()), ProbeOutcome::Legacy, "{response:?}");
        }
        assert_eq!(Probe::new().evaluate(ProbeResponse::TimedOut), ProbeOutcome::LegacyAfterRestart);
    }

    #[test]
    fn a_version_that_is_offered_is_asked_for_once_more() {
        let mut probe = Probe::new();
        let offered = || error(-32022, Some(json!({"supported": ["2026-07-28"], "requested": "2026-07-28"})));
        assert_eq!(probe.evaluate(offered()), ProbeOutcome::Retry);
        assert_eq!(probe.evaluate(offered()), ProbeOutcome::Fail("the server supports only 2026-07-28".to_owned()), "and not forever");
        let mut probe = Probe::new();
        let both = || error(-32022, Some(json!({"supported": ["2026-07-28", "2025-11-25"]})));
        assert_eq!(probe.evaluate(both()), ProbeOutcome::Retry);
        assert_eq!(probe.evaluate(both()), ProbeOutcome::Legacy);
    }

    #[test]
    fn trouble_is_no_verdict_on_the_era() {
        for response in
            [error(-32020, None), error(-32021, None), ProbeResponse::Status(500), ProbeResponse::Status(503), ProbeResponse::Status(302)]
        {
            assert!(matches!(Probe::new().evaluate(response.clone()), ProbeOutcome::Fail(_)), "{response:?}");
        }
        let unknown = error(-32022, Some(json!({"supported": ["2099-01-01"]})));
        assert_eq!(Probe::new().evaluate(unknown), ProbeOutcome::Fail("the server supports only 2099-01-01".to_owned()));
        for status in [401, 403] {
            assert_eq!(Probe::new().evaluate(ProbeResponse::Status(status)), ProbeOutcome::LoginRequired);
        }
    }
}
