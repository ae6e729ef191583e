//! Versions of the protocol, which fall into two eras, and the words that belong to them.

/// How two sides speak: with a handshake and a session, or with everything in each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` first; then both sides may ask.
    Legacy,
    /// Each request says all that the server needs to know.
    Modern,
}

/// Every version that is spoken here, the newest first.
pub const VERSIONS: [(&str, Era); 5] = [
    ("2026-07-28", Era::Modern),
    ("2025-11-25", Era::Legacy),
    ("2025-06-18", Era::Legacy),
    ("2025-03-26", Era::Legacy),
    ("2024-11-05", Era::Legacy),
];

impl Era {
    /// The era of a version; nothing for one that is not known here.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        VERSIONS.iter().find(|(known, _)| *known == version).map(|(_, era)| *era)
    }

    /// Its newest version.
    #[must_use]
    pub fn newest(self) -> &'static str {
        match self {
            Self::Modern => VERSIONS[0].0,
            Self::Legacy => VERSIONS[1].0,
        }
    }
}

/// Keys of `_meta`.
#[derive(Debug)]
pub struct MetaKeys {
    /// Which version a request speaks.
    pub version: &'static str,
    /// Who asks.
    pub client: &'static str,
    /// What the one who asks can do.
    pub capabilities: &'static str,
    /// From which level on the server may write logs for this request.
    pub log_level: &'static str,
    /// Who answers.
    pub server: &'static str,
    /// To which subscription a notification belongs.
    pub subscription: &'static str,
    /// How progress of this request is named.
    pub progress: &'static str,
}

/// Keys of `_meta`, as they are written.
pub const META: MetaKeys = MetaKeys {
    version: "io.modelcontextprotocol/protocolVersion",
    client: "io.modelcontextprotocol/clientInfo",
    capabilities: "io.modelcontextprotocol/clientCapabilities",
    log_level: "io.modelcontextprotocol/logLevel",
    server: "io.modelcontextprotocol/serverInfo",
    subscription: "io.modelcontextprotocol/subscriptionId",
    progress: "progressToken",
};

/// Codes of errors.
#[derive(Debug)]
pub struct Codes {
    /// It is no JSON.
    pub parse: i64,
    /// It is no request.
    pub request: i64,
    /// There is no such method.
    pub method: i64,
    /// The parameters do not fit.
    pub params: i64,
    /// The other side failed.
    pub internal: i64,
    /// Headers and body do not agree.
    pub headers: i64,
    /// The one who asks lacks a capability.
    pub capability: i64,
    /// The version is not spoken there.
    pub version: i64,
}

/// Codes of errors, as they are written.
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
