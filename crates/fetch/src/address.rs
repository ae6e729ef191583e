//! Checks which URLs may be fetched, as far as possible without the network. `lookup.rs` checks the addresses of a name.

use std::net::IpAddr;

use reqwest::Url;

use crate::error::FetchError;
use crate::networks::is_public;

/// Which addresses a request may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Any address. For URLs that the operator wrote. A redirect to another host must lead to a public address.
    Any,
    /// Only public addresses. For URLs that come from a model or another untrusted source.
    #[default]
    Public,
    /// Only loopback addresses, that is, this machine.
    Local,
}

/// Why an address is not allowed. Nothing was sent to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The URL scheme is neither `http` nor `https`.
    #[error("unsupported URL scheme `{0}:`; use `http://` or `https://`")]
    Scheme(String),
    /// The URL contains a user name or password.
    #[error("the URL contains a user name or password; remove them from the URL")]
    UserInfo,
    /// The host name is always local, such as `localhost`, but the address must be public.
    #[error("`{0}` is a local name; only public addresses are allowed")]
    LocalName(String),
    /// The host is, or resolves to, an address that is not public.
    #[error("`{0}` resolves to an address that is not public; only public addresses are allowed")]
    NotPublic(String),
    /// The host is, or resolves to, an address of another machine, but the address must be local.
    #[error("`{0}` is not on this machine; only local addresses are allowed")]
    NotLocal(String),
    /// The server redirected from `https` to `http`.
    #[error("the server redirected from https to http, which is not encrypted")]
    Downgrade,
    /// The server redirected a request with a body to another host.
    #[error("refused a redirect to another host, which would receive the request body")]
    BodyElsewhere,
}

/// Parses a URL that a person or a model wrote.
///
/// Rejects URLs that two parsers could read differently. This is stricter than the URL standard, which removes tabs and line breaks
/// and treats `\` as `/`.
///
/// # Errors
/// Returns an error if `text` is not an absolute `http` or `https` URL, or if it contains a user name or password.
pub fn read_url(text: &str) -> Result<Url, FetchError> {
    let bad = |reason: &str| FetchError::BadUrl { reason: reason.to_owned() };
    if text.chars().any(|character| character.is_control() || character.is_whitespace()) {
        return Err(bad("it contains white space or control characters"));
    }
    if text.contains('\\') {
        return Err(bad("it contains a `\\`"));
    }
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    check_form(&url)?;
    Ok(url)
}

/// Fails if the URL is not allowed for any [`Reach`]: another scheme than `http` or `https`, or a user name or password.
pub(crate) fn check_form(url: &Url) -> Result<(), Refusal> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refusal::Scheme(url.scheme().chars().take(20).collect()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refusal::UserInfo);
    }
    Ok(())
}

/// Fails if `reach` does not allow the host of the URL. Checks IP addresses and names that are always local, without a DNS lookup.
pub(crate) fn check_reach(url: &Url, reach: Reach) -> Result<(), Refusal> {
    let Some(host) = url.host_str() else { return Ok(()) };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match (reach, address) {
        (Reach::Public, Ok(address)) if !is_public(address) => Err(Refusal::NotPublic(host.to_owned())),
        (Reach::Public, Err(_)) if is_local_name(host) => Err(Refusal::LocalName(host.to_owned())),
        (Reach::Local, Ok(address)) if !address.is_loopback() => Err(Refusal::NotLocal(host.to_owned())),
        _ => Ok(()),
    }
}

/// Returns whether a host name is local by convention, whatever it resolves to: `localhost`, `internal` and their subdomains.
pub(crate) fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    ["localhost", "internal"].iter().any(|local| host.strip_suffix(local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Returns the scheme, host and port of a URL. Errors show only these, because paths and queries may contain secrets.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str) -> Result<(), FetchError> {
        read_url(text).and_then(|url| check_reach(&url, Reach::Public).map_err(FetchError::from))
    }

    /// The inputs of security cases S14 to S17, S21 and S22.
    #[test]
    fn addresses_of_strangers_stay_outside() {
        for text in [
            // S14
            "http://127.0.0.1:7800",
            "http://localhost",
            "http://[::1]",
            "http://0.0.0.0",
            "http://[::]",
            // S15
            "http://169.254.169.254/latest/meta-data",
            "http://metadata.google.internal",
            "http://[fd00:ec2::254]",
            // S16
            "http://2130706433",
            "http://0x7f.1",
            "http://0177.0.0.1",
            "http://127.1",
            "http://127。0。0。1",
            // S17
            "http://[::ffff:127.0.0.1]",
            "http://[64:ff9b::7f00:1]",
            "http://[2002:7f00:1::]",
            "http://[fe80::1%25lo]",
            // S21
            "http://good.example@127.0.0.1/",
            "http://user:password@good.example/",
            "http://127.0.0.1#@good.example",
            "http://good.example\\@127.0.0.1/",
            "http://good.example\t/",
            "http://good.example/\r\nHost: evil.example",
            "http://127.0.0.1\n/",
            // S22
            "http://evil.example\0.good.example/",
            "http://localhost./",
            "http://LOCALHOST/",
            "http://app.localhost/",
            "http://ｌocalhost/",
            "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
            // Not addresses for us at all.
            "file:///etc/passwd",
            "gopher://good.example",
            "data:text/plain,hello",
            "//good.example/",
            "good.example",
            "http://",
            "",
        ] {
            assert!(judge(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_public_internet_is_open() {
        for text in
            ["http://good.example", "https://8.8.8.8/x?y=z", "https://localhost.example/", "https://internals.example", "http://例え.jp/"]
        {
            assert!(judge(text).is_ok(), "{text:?}: {:?}", judge(text));
        }
    }

    #[test]
    fn the_operator_may_reach_anything_by_http() {
        for text in ["http://127.0.0.1:1", "http://localhost", "https://10.0.0.1"] {
            let url = read_url(text).expect("an address");
            assert_eq!(check_reach(&url, Reach::Any), Ok(()), "{text}");
        }
    }

    #[test]
    fn this_machine_is_this_machine() {
        for (text, open) in [("http://127.0.0.1:1", true), ("http://[::1]", true), ("http://10.0.0.1", false), ("https://8.8.8.8", false)] {
            let url = read_url(text).expect("an address");
            assert_eq!(check_reach(&url, Reach::Local).is_ok(), open, "{text}");
        }
    }

    #[test]
    fn errors_name_no_more_than_the_origin() {
        let url = read_url("https://good.example:8443/secret/path?key=canary").expect("an address");
        assert_eq!(origin(&url), "https://good.example:8443");
    }
}
