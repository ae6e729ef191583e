//! Converts failed requests and error responses to tool errors.
//!
//! Error messages quote text from the server. Because models read it, the text is redacted, then shortened and escaped.

use std::fmt::Write;
use std::time::Duration;

use helve_core::{Denial, ErrorKind, Redactor, ToolError, printable};
use helve_fetch::{FetchError, Refusal, Response};
use serde_json::json;

/// Maximum length of an excerpt of a response in an error message, in characters.
const EXCERPT: usize = 300;
/// Status codes that always count as transient failures.
const TRANSIENT: [u16; 3] = [502, 503, 504];

/// Returns the error for a request that got no response.
pub(crate) fn of_fetch(error: FetchError) -> ToolError {
    let message = printable::escape(&error.to_string());
    let failed = match &error {
        FetchError::Unreachable { .. } => ToolError::new(ErrorKind::Unreachable, message),
        FetchError::Timeout { .. } => ToolError::new(ErrorKind::Timeout, message),
        FetchError::Closed { .. } => ToolError::failed(message + "; the request may or may not have taken effect").transient(true),
        FetchError::Refused(Refusal::NotPublic(_) | Refusal::LocalName(_)) => ToolError::denied(Denial::Policy, message),
        _ => ToolError::failed(message),
    };
    failed.caused_by(error)
}

/// Returns the error for a response with a status other than success.
pub(crate) fn of_status(response: &Response, retry_on: &[u16], redactor: &Redactor) -> ToolError {
    let status = response.status.as_u16();
    let mut message = format!("{} responded with {status}", response.url.host_str().unwrap_or("the server"));
    // Writing to a string cannot fail.
    if let Some(reason) = response.status.canonical_reason() {
        let _ = write!(message, " {reason}");
    }
    let excerpt = if is_encoded(response).is_some() { String::new() } else { excerpt(&response.body, redactor) };
    if !excerpt.is_empty() {
        let _ = write!(message, ": {excerpt}");
    }
    let mut error = match status {
        401 | 403 => ToolError::denied(Denial::Policy, message),
        408 => ToolError::new(ErrorKind::Timeout, message),
        429 => ToolError::new(ErrorKind::RateLimited, message),
        _ => ToolError::failed(message),
    };
    if TRANSIENT.contains(&status) || retry_on.contains(&status) {
        error = error.transient(true);
    }
    if let Some(delay) = response.header("retry-after").and_then(delay) {
        error = error.retry_after(delay);
    }
    error.with("status", json!(status))
}

/// Returns the beginning of a text from the server, redacted and escaped.
pub(crate) fn excerpt(bytes: &[u8], redactor: &Redactor) -> String {
    let text = String::from_utf8_lossy(bytes);
    let clean = redactor.clean(&text);
    let words: Vec<&str> = clean.as_deref().unwrap_or(&text).split_whitespace().take(EXCERPT).collect();
    let escaped = printable::escape(&words.join(" "));
    // Keep only the beginning: a truncated response may end with half a secret.
    let short: String = escaped.chars().take(EXCERPT).collect();
    if short.len() < escaped.len() { short + "…" } else { short }
}

/// Returns the content encoding of a response, or `None` if the response is not encoded.
pub(crate) fn is_encoded(response: &Response) -> Option<&str> {
    response.header("content-encoding").map(str::trim).filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
}

/// Parses the delay in a `Retry-After` header, which is a number of seconds or a date.
fn delay(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
    let left = date.timestamp().duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(left).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_in_both_forms() {
        assert_eq!(delay("17"), Some(Duration::from_secs(17)));
        assert_eq!(delay("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let later = delay("Fri, 01 Jan 2100 00:00:00 GMT").expect("a date");
        assert!(later > Duration::from_hours(24 * 365));
        assert_eq!(delay("soon"), None);
        assert_eq!(delay("-5"), None);
    }

    #[test]
    fn an_excerpt_is_redacted_before_it_is_cut() {
        let redactor = Redactor::default();
        redactor.add(["canary-0123456789".to_owned().into()]);
        let text = format!("{}canary-0123456789 and\n\n more\u{1b}[31m", "x".repeat(EXCERPT - 12));
        let short = excerpt(text.as_bytes(), &redactor);
        assert!(!short.contains("canary") && short.ends_with("[REDACTED] a…"), "{short}");
        assert_eq!(excerpt(b"a\n\t b \x1b \xff", &redactor), "a b \\u{1b} \u{fffd}");
    }
}
