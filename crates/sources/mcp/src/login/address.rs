//! Checks the URLs that a server or an issuer names, before Helve opens them or sends a request.

use std::net::IpAddr;

use helve_fetch::{Reach, Url, read_url};

use super::error::AuthError;

const LONGEST: usize = 2048;

/// Checks the URLs that a server and its issuers name.
#[derive(Debug, Clone)]
pub(super) struct AddressGuard {
    /// Whether the server is on this machine, so that its issuer may also be on this machine.
    local: bool,
    /// Whether tokens may be sent to the server: over HTTPS, or on this machine.
    safe: bool,
    /// The origins of the URLs that a person configured.
    written: Vec<String>,
    server: String,
}

impl AddressGuard {
    /// Creates a guard for a server and, if a person configured one, its issuer.
    pub(super) fn new(server: &Url, issuer: Option<&str>) -> Self {
        let issuer = issuer.and_then(|issuer| read_url(issuer).ok());
        let written = std::iter::once(server).chain(&issuer).map(origin).collect();
        let local = is_local(server);
        Self { local, safe: local || server.scheme() == "https", written, server: origin(server) }
    }

    /// Returns the origin of the server, for errors.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Returns an error if the server would receive tokens over plain HTTP.
    pub(super) fn check_server(&self) -> Result<(), AuthError> {
        let reason = || "logins require https".to_owned();
        if self.safe { Ok(()) } else { Err(AuthError::Address { what: "server's address", reason: reason() }) }
    }

    /// Parses and checks a URL that a server or an issuer named. `what` describes the URL in errors.
    pub(super) fn read(&self, text: &str, what: &'static str) -> Result<Url, AuthError> {
        let bad = |reason: String| AuthError::Address { what, reason };
        if text.len() > LONGEST {
            return Err(bad(format!("it is longer than {LONGEST} bytes")));
        }
        let url = read_url(text).map_err(|error| bad(error.to_string()))?;
        if url.fragment().is_some() {
            return Err(bad("it has a fragment".to_owned()));
        }
        // The URL becomes an argument of a program that opens browsers, and that program may be a shell script.
        if let Some(character) = text.chars().chain(url.as_str().chars()).find(|character| !is_plain(*character)) {
            return Err(bad(format!("it contains `{}`", character.escape_default())));
        }
        if url.host_str().unwrap_or_default().contains(['!', '*', '+', ',', '=', '~', '&']) {
            return Err(bad("its host name is invalid".to_owned()));
        }
        if is_local(&url) && !self.local {
            return Err(bad("it points to this machine, but the server is elsewhere".to_owned()));
        }
        if url.scheme() != "https" && !is_local(&url) {
            return Err(bad("it must start with `https://`".to_owned()));
        }
        Ok(url)
    }

    /// Returns which addresses a request to this URL may use.
    pub(super) fn reach(&self, url: &Url) -> Reach {
        if self.local && is_local(url) {
            Reach::Local
        } else if self.written.contains(&origin(url)) {
            // A person configured this server, for example one of a company with a private address.
            Reach::Any
        } else {
            Reach::Public
        }
    }
}

/// Returns the origin of a URL: scheme, host and port.
pub(super) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Returns whether the resource in metadata is this server, or has a path that contains the server's path.
pub(super) fn covers(resource: &Url, server: &Url) -> bool {
    let place = resource.path().trim_end_matches('/');
    let inside = server.path().strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let same_query = resource.query().is_none() || resource.query() == server.query();
    resource.origin() == server.origin() && inside && same_query
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        // The address that the name resolves to is checked again later.
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Returns whether a character is allowed in URLs and has no special meaning to a shell.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~:/?[]@!*+,=%&".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(server: &str) -> AddressGuard {
        AddressGuard::new(&read_url(server).expect("an address"), None)
    }

    /// Security case S41.
    #[test]
    fn addresses_that_are_programs_are_refused() {
        for server in ["https://mcp.example/mcp", "http://127.0.0.1:1/mcp"] {
            for text in [
                "file:///etc/passwd",
                "javascript:alert(1)",
                "a$(calc)",
                "a:$(calc.exe)?response_type=code",
                "https://a$(calc)/",
                "https://login.example/$(calc)",
                "https://login.example/?x=`calc`",
                "https://login.example/;calc",
                "https://login.example/'|calc|'",
                "https://login.example/\u{202e}",
                "https://login.example/\r\nHost: x",
                "https://login.example/ --new-window",
                "https://me:pass@login.example/",
                "https://login.example/#x",
                "https://login.example\\@evil.example/",
                "--version",
                "data:text/html,x",
                "smb://host/share",
                "http://login.example/",
                "",
                "https://",
                "https://a,b/",
            ] {
                let refused = guard(server).read(text, "authorization endpoint");
                assert!(matches!(refused, Err(AuthError::Address { .. })), "{text:?}: {refused:?}");
            }
            assert!(guard(server).read(&format!("https://x.example/{}", "a".repeat(LONGEST)), "issuer").is_err());
        }
    }

    #[test]
    fn this_machine_is_open_only_to_servers_on_it() {
        for text in ["http://127.0.0.1:2/x", "http://localhost:2/x", "http://[::1]:2/", "https://localhost/"] {
            assert!(guard("https://mcp.example/").read(text, "issuer").is_err(), "{text}");
            let url = guard("http://localhost:1/").read(text, "issuer").expect("it is local");
            assert_eq!(guard("http://localhost:1/").reach(&url), Reach::Local, "{text}");
        }
        let url = guard("http://localhost:1/").read("https://login.example/", "issuer").expect("it is public");
        assert_eq!(guard("http://localhost:1/").reach(&url), Reach::Public);
        assert!(guard("http://mcp.example/").check_server().is_err());
    }

    #[test]
    fn what_a_person_wrote_may_be_anywhere() {
        let server = read_url("https://mcp.corp.internal/mcp").expect("an address");
        let guard = AddressGuard::new(&server, Some("https://login.corp.internal/tenant"));
        for (text, reach) in [
            ("https://mcp.corp.internal/.well-known/x", Reach::Any),
            ("https://login.corp.internal/token", Reach::Any),
            ("https://other.corp.internal/", Reach::Public),
            ("https://mcp.corp.internal:8443/", Reach::Public),
        ] {
            assert_eq!(guard.reach(&read_url(text).expect("an address")), reach, "{text}");
        }
    }

    #[test]
    fn a_resource_is_the_server_or_its_place() {
        let judge = |resource: &str, server: &str| covers(&read_url(resource).expect("one"), &read_url(server).expect("two"));
        for resource in
            ["https://x.example", "https://X.example/", "https://x.example/a", "https://x.example:443/a/", "https://x.example/a/mcp"]
        {
            assert!(judge(resource, "https://x.example/a/mcp"), "{resource}");
        }
        for resource in [
            "https://evil.example/a/mcp",
            "http://x.example/a/mcp",
            "https://x.example:8443/a/mcp",
            "https://x.example/a/m",
            "https://x.example/b",
            "https://x.example/a/mcp/more",
            "https://x.example/a/mcp?q",
        ] {
            assert!(!judge(resource, "https://x.example/a/mcp"), "{resource}");
        }
    }
}
