//! Controls access by the host name in a request, the origin of the web page that sent it, and the token.
//!
//! A web page can make a browser send requests to this machine, under a host name that the attacker chose (DNS rebinding). The host name
//! reveals such requests, so the host name is checked first.

use std::net::IpAddr;

use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, StatusCode, header};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use super::options::ServerOptions;

/// Why access is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The host name does not belong to the server.
    Host,
    /// The origin of the web page is not allowed.
    Origin,
    /// The token is missing.
    NoToken,
    /// The token is wrong.
    WrongToken,
}

impl Refusal {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Self::Host => "The host name in the header `Host` is not allowed",
            Self::Origin => "This origin is not allowed",
            Self::NoToken => "A token is required: `Authorization: Bearer TOKEN`",
            Self::WrongToken => "The token is invalid",
        }
    }

    /// Returns the value of the header `WWW-Authenticate`, if the response must have one.
    pub fn challenge(self) -> Option<&'static str> {
        match self {
            Self::Host | Self::Origin => None,
            Self::NoToken => Some("Bearer"),
            Self::WrongToken => Some("Bearer error=\"invalid_token\""),
        }
    }
}

/// Checks whether a request is allowed. `bound` is the address that the server listens on.
pub(super) fn check(options: &ServerOptions, bound: Option<IpAddr>, head: &Parts) -> Result<(), Refusal> {
    let mut hosts = head.headers.get_all(header::HOST).iter().map(|host| host.to_str().ok()).peekable();
    // The host is in the header or in the URI. If both are present, both are checked.
    if hosts.peek().is_none() && head.uri.authority().is_none() {
        return Err(Refusal::Host);
    }
    let named = head.uri.authority().map(|authority| Some(authority.as_str()));
    if !hosts.chain(named).all(|host| host.is_some_and(|host| is_ours(host, options, bound))) {
        return Err(Refusal::Host);
    }
    let mut origins = head.headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().ok());
    if !origins.all(|origin| origin.is_some_and(|origin| may_ask(origin, options))) {
        return Err(Refusal::Origin);
    }
    options.token.as_ref().map_or(Ok(()), |token| check_token(&head.headers, token.expose_secret()))
}

fn is_ours(host: &str, options: &ServerOptions, bound: Option<IpAddr>) -> bool {
    let Some(name) = name(host) else { return false };
    let address = name.parse::<IpAddr>().ok();
    is_local(name)
        || (address.is_some() && address == bound)
        || options.hosts.iter().any(|ours| ours == "*" || ours.eq_ignore_ascii_case(name) || ours.eq_ignore_ascii_case(host))
}

fn may_ask(origin: &str, options: &ServerOptions) -> bool {
    let local = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).and_then(name).is_some_and(is_local);
    local || options.origins.iter().any(|ours| ours == "*" || ours.eq_ignore_ascii_case(origin))
}

/// Returns the host in `host:port`, without the brackets of an IPv6 address.
fn name(host: &str) -> Option<&str> {
    let authority: Authority = host.parse().ok()?;
    // Rejects user information before an `@`.
    let length = (!host.contains('@')).then(|| authority.host().len())?;
    host.get(..length).map(|name| name.trim_start_matches('[').trim_end_matches(']'))
}

fn is_local(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn check_token(headers: &HeaderMap, token: &str) -> Result<(), Refusal> {
    let given = headers.get(header::AUTHORIZATION).ok_or(Refusal::NoToken)?.as_bytes();
    let (scheme, given) = given.split_at_checked("Bearer ".len()).ok_or(Refusal::NoToken)?;
    if !scheme.eq_ignore_ascii_case(b"Bearer ") {
        return Err(Refusal::NoToken);
    }
    // Comparing whole digests takes the same time for every token.
    let pairs = Sha256::digest(given).into_iter().zip(Sha256::digest(token));
    let differs = pairs.fold(0, |differs, (a, b)| differs | (a ^ b));
    if differs == 0 { Ok(()) } else { Err(Refusal::WrongToken) }
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn checked(options: &ServerOptions, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut request = Request::builder().uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(options, Some(IpAddr::from([192, 168, 0, 7])), &request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn only_own_names_are_answered() {
        let options = ServerOptions { hosts: vec!["helve.example".into(), "other.example:81".into()], ..ServerOptions::default() };
        for host in
            ["localhost", "LocalHost:80", "127.0.0.1:7800", "127.1.2.3", "[::1]:1", "192.168.0.7:9", "helve.example:7", "other.example:81"]
        {
            assert_eq!(checked(&options, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example.com",
            "localhost.evil.example",
            "evil.example:80",
            "10.0.0.1",
            "other.example:82",
            "localhost@evil.example",
            "evil.example@localhost",
            "",
            "[::2]",
            "2130706433",
        ] {
            assert_eq!(checked(&options, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(checked(&options, &[]), Err(Refusal::Host));
        assert_eq!(checked(&options, &[("host", "localhost"), ("host", "evil.example")]), Err(Refusal::Host), "each counts");
        let elsewhere = Request::builder().uri("http://evil.example/mcp").header("host", "localhost").body(()).unwrap();
        assert_eq!(check(&options, None, &elsewhere.into_parts().0), Err(Refusal::Host), "so does the address");
        assert_eq!(checked(&ServerOptions { hosts: vec!["*".into()], ..ServerOptions::default() }, &[("host", "any.example")]), Ok(()));
    }

    #[test]
    fn only_pages_of_this_machine_may_ask() {
        let options = ServerOptions { origins: vec!["https://helve.example".into()], ..ServerOptions::default() };
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:80", "https://helve.example"] {
            assert_eq!(checked(&options, &[("host", "localhost"), ("origin", origin)]), Ok(()), "{origin}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "",
            "localhost",
            "https://helve.example.evil.example",
            "file://localhost",
            "http://localhost@evil",
        ] {
            assert_eq!(checked(&options, &[("host", "localhost"), ("origin", origin)]), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn the_token_is_asked_for() {
        let options = ServerOptions { token: Some("secret".into()), ..ServerOptions::default() };
        let with = |value: &str| checked(&options, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with("Bearer secret"), Ok(()));
        assert_eq!(with("bearer secret"), Ok(()));
        assert_eq!(with("Bearer secre"), Err(Refusal::WrongToken));
        assert_eq!(with("Bearer "), Err(Refusal::WrongToken));
        assert_eq!(with("Basic secret"), Err(Refusal::NoToken));
        assert_eq!(checked(&options, &[("host", "localhost")]), Err(Refusal::NoToken));
        assert_eq!(checked(&options, &[("host", "evil.example"), ("authorization", "Bearer secret")]), Err(Refusal::Host), "names first");
    }
}
