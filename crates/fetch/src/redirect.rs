//! Redirects: creates the next request from a redirect response. Does no I/O.

use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use reqwest::{Method, StatusCode, Url};

use crate::address::{self, Reach, Refusal, check_form, check_reach};
use crate::error::FetchError;
use crate::request::Request;

/// Headers that are sent to another origin. An allow list also protects credentials in custom headers.
const HARMLESS: [HeaderName; 3] = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE];

/// One request in a chain of redirects.
#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) reach: Reach,
    /// The URL and the reach of the original request.
    first: (Url, Reach),
}

impl Hop {
    /// Creates the first hop from the original request, after checking its URL.
    pub(crate) fn first(request: Request) -> Result<Self, FetchError> {
        let Request { method, url, headers, body, reach, limits: _ } = request;
        check_form(&url)?;
        check_reach(&url, reach)?;
        let first = (url.clone(), reach);
        Ok(Self { method, url, headers, body, reach, first })
    }

    /// Returns the next hop, or `None` if the response is not a redirect. Fails if the redirect is invalid or not allowed.
    pub(crate) fn next(&self, status: StatusCode, response: &HeaderMap) -> Result<Option<Self>, FetchError> {
        let redirects = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = response.get(LOCATION).filter(|_| redirects) else { return Ok(None) };
        let invalid = || FetchError::Protocol { origin: address::origin(&self.url), reason: "invalid redirect".to_owned() };
        let location = str::from_utf8(location.as_bytes()).map_err(|_| invalid())?;
        let mut url = self.url.join(location).map_err(|_| invalid())?;
        url.set_fragment(None);
        check_form(&url)?;
        if self.url.scheme() == "https" && url.scheme() == "http" {
            return Err(Refusal::Downgrade.into());
        }
        let is_first = url.host() == self.first.0.host();
        let reach = if is_first { self.first.1 } else { Reach::Public };
        check_reach(&url, reach)?;
        Ok(Some(self.clone().redirected(status, url, reach)?))
    }

    /// Changes method, body and headers as the status and the new URL require.
    fn redirected(mut self, status: StatusCode, url: Url, reach: Reach) -> Result<Self, Refusal> {
        let becomes_get = match status.as_u16() {
            303 => self.method != Method::HEAD,
            301 | 302 => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
        }
        if self.body.is_some() && !is_same_server(&self.url, &url) {
            return Err(Refusal::BodyElsewhere);
        }
        if url.origin() != self.url.origin() {
            self.headers = HARMLESS.into_iter().filter_map(|name| self.headers.get(&name).cloned().map(|value| (name, value))).collect();
        }
        Ok(Self { url, reach, ..self })
    }
}

/// Returns whether two URLs have the same host and port, or the same host and a change from http to https on the default ports.
fn is_same_server(one: &Url, other: &Url) -> bool {
    let upgrade = (one.scheme(), other.scheme()) == ("http", "https") && one.port().is_none() && other.port().is_none();
    one.host() == other.host() && (one.port_or_known_default() == other.port_or_known_default() || upgrade)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["authorization", "cookie", "x-api-key", "x-whatever"];

    fn hop(method: &str, from: &str) -> Hop {
        let mut request = Request::new(method.parse().expect("a method"), from.parse().expect("an address"));
        request.body = (method != "GET").then(|| b"body".to_vec());
        request.reach = Reach::Any;
        for name in KEYS.into_iter().chain(["accept", "content-type"]) {
            request.headers.insert(name, "value".parse().expect("a value"));
        }
        Hop::first(request).expect("a hop")
    }

    fn follow(method: &str, from: &str, status: u16, to: &str) -> Result<Hop, FetchError> {
        let response = HeaderMap::from_iter([(LOCATION, to.parse().expect("a value"))]);
        let status = StatusCode::from_u16(status).expect("a status");
        hop(method, from).next(status, &response).map(|next| next.expect("a redirect"))
    }

    #[test]
    fn methods_change_as_the_standard_says() {
        for (method, status, expected) in [
            ("GET", 301, "GET"),
            ("POST", 301, "GET"),
            ("POST", 302, "GET"),
            ("PUT", 302, "PUT"),
            ("PUT", 303, "GET"),
            ("DELETE", 303, "GET"),
            ("HEAD", 303, "HEAD"),
            ("POST", 307, "POST"),
            ("POST", 308, "POST"),
        ] {
            let next = follow(method, "http://a.example/x", status, "/y?z").expect("a hop");
            assert_eq!(next.method.as_str(), expected, "{method} {status}");
            assert_eq!(next.body.is_some(), !matches!(expected, "GET"), "{method} {status}");
            assert_eq!(next.url.as_str(), "http://a.example/y?z");
        }
    }

    #[test]
    fn what_proves_who_asks_stays_with_its_origin() {
        for (to, keeps) in [
            ("/other", true),
            ("http://a.example:80/other", true),
            ("https://a.example/", false),
            ("http://a.example:81/", false),
            ("http://b.example/", false),
            ("//b.example/", false),
            ("http://a.example.b.example/", false),
        ] {
            let next = follow("GET", "http://a.example/x?key=secret", 302, to).expect("a hop");
            for key in KEYS {
                assert_eq!(next.headers.contains_key(key), keeps, "{key} to {to}");
            }
            assert!(next.headers.contains_key("accept"), "{to}");
            assert_eq!(next.url.query(), None, "{to}");
        }
        // Coming back does not bring anything back.
        let away = follow("GET", "http://a.example/", 302, "http://b.example/").expect("a hop");
        let response = HeaderMap::from_iter([(LOCATION, "http://a.example/".parse().expect("a value"))]);
        let back = away.next(StatusCode::FOUND, &response).expect("allowed").expect("a redirect");
        assert!(!back.headers.contains_key("authorization"));
    }

    /// Security case S20.
    #[test]
    fn every_hop_is_checked() {
        for (to, why) in [
            ("file:///etc/passwd", Refusal::Scheme("file".into())),
            ("gopher://a.example", Refusal::Scheme("gopher".into())),
            ("data:text/plain,x", Refusal::Scheme("data".into())),
            ("https://user@a.example/", Refusal::UserInfo),
            ("http://a.example/", Refusal::Downgrade),
            ("https://127.0.0.1/", Refusal::NotPublic("127.0.0.1".into())),
            ("//localhost/", Refusal::LocalName("localhost".into())),
        ] {
            assert_eq!(follow("GET", "https://a.example/", 302, to).err(), Some(FetchError::Refused(why)), "{to}");
        }
        assert!(matches!(follow("GET", "https://a.example/", 302, "http://["), Err(FetchError::Protocol { .. })));
        let elsewhere = follow("POST", "https://a.example/", 307, "https://b.example/").err();
        assert_eq!(elsewhere, Some(FetchError::Refused(Refusal::BodyElsewhere)));
        let other_port = follow("POST", "https://a.example/", 307, "https://a.example:8443/").err();
        assert_eq!(other_port, Some(FetchError::Refused(Refusal::BodyElsewhere)));
        assert!(follow("POST", "http://a.example/", 307, "https://a.example/x").is_ok());
    }

    #[test]
    fn only_the_host_that_was_named_may_be_private() {
        assert!(follow("GET", "http://10.0.0.1/", 302, "http://10.0.0.1:8080/").is_ok_and(|next| next.reach == Reach::Any));
        assert!(follow("GET", "http://10.0.0.1/", 302, "http://10.0.0.2/").is_err());
        assert!(follow("GET", "http://10.0.0.1/", 302, "http://b.example/").is_ok_and(|next| next.reach == Reach::Public));
    }

    #[test]
    fn other_responses_are_no_redirects() {
        let response = HeaderMap::from_iter([(LOCATION, "/y".parse().expect("a value"))]);
        for status in [200, 201, 300, 304, 404] {
            assert!(
                hop("GET", "http://a.example").next(StatusCode::from_u16(status).expect("a status"), &response).expect("allowed").is_none()
            );
        }
        assert!(hop("GET", "http://a.example").next(StatusCode::FOUND, &HeaderMap::new()).expect("allowed").is_none());
    }
}
