//! Protocol versions, the two eras that they belong to, and JSON-RPC error codes.

/// A generation of the protocol: with a handshake and a session, or stateless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Versions with a handshake (`initialize`), after which both sides can send requests.
    Legacy,
    /// Stateless versions, in which each request contains everything that the server needs to know.
    Modern,
}

/// The supported protocol versions and their eras, newest first.
pub const VERSIONS: [(&str, Era); 5] = [
    ("2026-07-28", Era::Modern),
    ("2025-11-25", Era::Legacy),
    ("2025-06-18", Era::Legacy),
    ("2025-03-26", Era::Legacy),
    ("2024-11-05", Era::Legacy),
];

impl Era {
    /// Returns the era of a protocol version, or `None` if the version is not supported.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        VERSIONS.iter().find(|(known, _)| *known == version).map(|(_, era)| *era)
    }

    /// Returns the newest supported protocol version of the era.
    #[must_use]
    pub fn newest(self) -> &'static str {
        match self {
            Self::Modern => VERSIONS[0].0,
            Self::Legacy => VERSIONS[1].0,
        }
    }
}

/// The JSON-RPC error codes of the protocol; their values are in [`CODES`].
#[derive(Debug)]
pub struct Codes {
    /// The code for a message that is not valid JSON.
    pub parse: i64,
    /// The code for a message that is not a valid request.
    pub request: i64,
    /// The code for a method that does not exist.
    pub method: i64,
    /// The code for invalid parameters.
    pub params: i64,
    /// The code for an internal error of the server.
    pub internal: i64,
    /// The code for HTTP headers that do not match the body.
    pub headers: i64,
    /// The code for a capability that the client lacks.
    pub capability: i64,
    /// The code for an unsupported protocol version.
    pub version: i64,
}

/// The values of the JSON-RPC error codes.
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
