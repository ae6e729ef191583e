//! Which era a server speaks: what is asked first, and what its answer says.
//!
//! A client of both eras asks `server/discover`. Servers of the older era answer that in many ways, none of which is agreed on: whatever
//! is not clearly an answer of the newer era means the older one. What is wrong with the connection itself says nothing about the era.

use serde_json::Value;

use crate::{CODES, Era, RpcError};

/// What came of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A result.
    Result(Value),
    /// An error of the protocol, whatever the transport says beside it.
    Refused(RpcError),
    /// A status of HTTP without a message in it.
    Status(u16),
    /// Nothing, for as long as was waited.
    Silence,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The server speaks this modern version, and has said what it can.
    Modern {
        /// The version.
        version: &'static str,
        /// Its answer.
        found: Value,
    },
    /// The server wants `initialize`.
    Legacy,
    /// The same; but a server that is still busy with the question must be started again first.
    LegacyAfterRestart,
    /// Ask once more.
    Again,
    /// The server wants to know who asks.
    Authorise,
    /// There is no way to speak with it.
    Fail(String),
}

/// One server's probe.
#[derive(Debug, Default)]
pub struct Probe {
    again: bool,
}

impl Probe {
    /// A probe that has not asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what an answer means.
    pub fn hear(&mut self, heard: Heard) -> Verdict {
        match heard {
            Heard::Result(found) => discovered(found),
            Heard::Refused(error) if error.code == CODES.version => self.other_version(&error),
            Heard::Refused(error) if [CODES.headers, CODES.capability].contains(&error.code) => Verdict::Fail(error.to_string()),
            Heard::Refused(_) | Heard::Status(400 | 402 | 404..=499) => Verdict::Legacy,
            Heard::Status(401 | 403) => Verdict::Authorise,
            Heard::Status(status) => Verdict::Fail(format!("the server answers with HTTP {status}")),
            Heard::Silence => Verdict::LegacyAfterRestart,
        }
    }

    /// The server speaks the newer era, and not the version that was asked for.
    fn other_version(&mut self, error: &RpcError) -> Verdict {
        let supported = error.data.as_ref().and_then(|data| data.get("supported"));
        let named: Vec<&str> = supported.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let knows = |era: Era| named.iter().any(|version| Era::of(version) == Some(era));
        // One that names the very version that was asked for may mean it the second time.
        if knows(Era::Modern) && !std::mem::replace(&mut self.again, true) {
            return Verdict::Again;
        }
        if knows(Era::Legacy) {
            return Verdict::Legacy;
        }
        Verdict::Fail(match named.join(", ") {
            none if none.is_empty() => error.to_string(),
            versions => format!("the server speaks only {versions}"),
        })
    }
}

fn discovered(found: Value) -> Verdict {
    let supported = found.get("supportedVersions").and_then(Value::as_array);
    let spoken = supported.into_iter().flatten().filter_map(Value::as_str);
    let modern = spoken.filter_map(|version| crate::VERSIONS.iter().find(|(known, era)| *known == version && *era == Era::Modern));
    match modern.map(|(version, _)| *version).max() {
        Some(version) => Verdict::Modern { version, found },
        // A result that says nothing, as from servers that answer everything, or one that names only older versions.
        None => Verdict::Legacy,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: i64, data: Option<Value>) -> Heard {
        Heard::Refused(RpcError { code, message: "no".to_owned(), data })
    }

    #[test]
    fn a_server_of_the_newer_era_says_so() {
        let found = json!({"supportedVersions": ["2099-01-01", "2026-07-28"], "capabilities": {}});
        assert_eq!(Probe::new().hear(Heard::Result(found.clone())), Verdict::Modern { version: "2026-07-28", found });
    }

    #[test]
    fn whatever_else_is_said_means_the_older_one() {
        for heard in [
            refused(-32601, None),
            refused(-32600, None),
            refused(-32000, None),
            refused(-32602, None),
            Heard::Result(json!({})),
            Heard::Result(json!(null)),
            Heard::Result(json!({"supportedVersions": ["2025-11-25"]})),
            Heard::Status(400),
            Heard::Status(404),
            Heard::Status(405),
            refused(-32022, Some(json!({"supported": ["2025-11-25", "2024-11-05"]}))),
        ] {
            assert_eq!(Probe::new().hear(heard.clone()), Verdict::Legacy, "{heard:?}");
        }
        assert_eq!(Probe::new().hear(Heard::Silence), Verdict::LegacyAfterRestart);
    }

    #[test]
    fn a_version_that_is_offered_is_asked_for_once_more() {
        let mut probe = Probe::new();
        let offered = || refused(-32022, Some(json!({"supported": ["2026-07-28"], "requested": "2026-07-28"})));
        assert_eq!(probe.hear(offered()), Verdict::Again);
        assert_eq!(probe.hear(offered()), Verdict::Fail("the server speaks only 2026-07-28".to_owned()), "and not for ever");
        let mut probe = Probe::new();
        let both = || refused(-32022, Some(json!({"supported": ["2026-07-28", "2025-11-25"]})));
        assert_eq!(probe.hear(both()), Verdict::Again);
        assert_eq!(probe.hear(both()), Verdict::Legacy);
    }

    #[test]
    fn trouble_is_no_verdict_on_the_era() {
        for heard in [refused(-32020, None), refused(-32021, None), Heard::Status(500), Heard::Status(503), Heard::Status(302)] {
            assert!(matches!(Probe::new().hear(heard.clone()), Verdict::Fail(_)), "{heard:?}");
        }
        let unknown = refused(-32022, Some(json!({"supported": ["2099-01-01"]})));
        assert_eq!(Probe::new().hear(unknown), Verdict::Fail("the server speaks only 2099-01-01".to_owned()));
        for status in [401, 403] {
            assert_eq!(Probe::new().hear(Heard::Status(status)), Verdict::Authorise);
        }
    }
}
