//! Protocol versions, the two eras that they fall into, and error codes.

/// The era of a protocol version: with a handshake and a session, or stateless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake with `initialize`, then requests in both directions.
    Legacy,
    /// Each request carries all that the server needs to know.
    Modern,
}

/// Every supported version, the newest first.
pub const VERSIONS: [(&str, Era); 5] = [
    ("2026-07-28", Era::Modern),
    ("2025-11-25", Era::Legacy),
    ("2025-06-18", Era::Legacy),
    ("2025-03-26", Era::Legacy),
    ("2024-11-05", Era::Legacy),
];

impl Era {
    /// The era of a version. Returns `None` if the version is not supported.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        VERSIONS.iter().find(|(known, _)| *known == version).map(|(_, era)| *era)
    }

    /// The newest version of the era.
    #[must_use]
    pub fn newest(self) -> &'static str {
        match self {
            Self::Modern => VERSIONS[0].0,
            Self::Legacy => VERSIONS[1].0,
        }
    }
}

/// JSON-RPC error codes.
#[derive(Debug)]
pub struct Codes {
    /// Invalid JSON.
    pub parse: i64,
    /// Invalid request.
    pub request: i64,
    /// Method not found.
    pub method: i64,
    /// Invalid parameters.
    pub params: i64,
    /// Internal error.
    pub internal: i64,
    /// Headers and body do not match.
    pub headers: i64,
    /// The client lacks a capability.
    pub capability: i64,
    /// The protocol version is not supported.
    pub version: i64,
}

/// The error codes as they are written.
pub const CODES: Codes = Codes {
    parse: -32700,
    request: -32600,
    method: -32601,
    params: -32602,
    internal: -32603,
    headers: -32020,
    capability: -32021,
    version: -32022,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_era() {
        assert_eq!(Era::of("2026-07-28"), Some(Era::Modern));
        assert_eq!(Era::of("2024-11-05"), Some(Era::Legacy));
        assert_eq!(Era::of("1999-01-01"), None);
        for era in [Era::Modern, Era::Legacy] {
            assert_eq!(Era::of(era.newest()), Some(era));
        }
        assert!(VERSIONS.windows(2).all(|pair| pair[0].0 > pair[1].0), "the newest first");
    }
}
