//! Converts failed requests into a [`ModelError`], from the status, the headers and a body whose form depends on the provider.

use std::time::Duration;

use helve_core::{Feature, ModelError, printable};
use helve_fetch::{FetchError, HeaderMap, Refusal};
use serde_json::Value;

/// Phrases in an error message that mean that the context is too long.
const CONTEXT_LENGTH: [&str; 8] = [
    "context length",
    "context window",
    "maximum context",
    "context size",
    "too many tokens",
    "prompt is too long",
    "exceeds the available context",
    "input token count",
];
/// Phrases that mean that a quota or credit is used up.
const QUOTA: [&str; 4] = ["exceeded your current quota", "credit balance", "insufficient credits", "insufficient balance"];
/// Phrases that mean that a content filter blocked the request.
const FILTER: [&str; 3] = ["content management policy", "content filter", "safety system"];
/// Phrases that mean that the model or server does not support a feature.
const UNSUPPORTED: [&str; 10] = [
    "not support",
    "unsupported",
    "unknown",
    "unrecognized",
    "not enabled",
    "requires",
    "invalid",
    "not allowed",
    "cannot",
    "no endpoints found",
];
/// Phrases that refer to structured output.
const SCHEMA: [&str; 9] = [
    "response_format",
    "json_schema",
    "responseschema",
    "response schema",
    "response_schema",
    "response mime type",
    "text.format",
    "structured output",
    "grammar",
];

/// Converts the error of a request without a complete response.
pub(crate) fn of_fetch(error: &FetchError) -> ModelError {
    match error {
        FetchError::Timeout { .. } => ModelError::Timeout(error.to_string()),
        FetchError::Refused(Refusal::NotLocal(_)) => ModelError::Refused(format!("{error} (`--local`)")),
        FetchError::BadUrl { .. } | FetchError::Refused(_) | FetchError::Setup { .. } => ModelError::Refused(error.to_string()),
        FetchError::Protocol { .. } | FetchError::TooLarge { .. } => ModelError::Protocol(error.to_string()),
        _ => ModelError::Network(error.to_string()),
    }
}

/// Returns the error for a response whose status is not a success.
pub(crate) fn of_response(status: u16, headers: &HeaderMap, body: &[u8]) -> ModelError {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    // Gemini wraps its errors in a list when it streams.
    let value = value.get(0).unwrap_or(&value);
    Failure::read(value, body).judge(status, retry_after(headers))
}

/// Returns the error for an error object inside a response.
pub(crate) fn of_object(error: &Value) -> ModelError {
    let failure = Failure::read(error, b"");
    let status = [&failure.code, &failure.kind].iter().find_map(|code| code.parse().ok()).unwrap_or(0);
    failure.judge(status, None)
}

/// Fails if a response contains an error object.
pub(crate) fn check(error: Option<&Value>) -> Result<(), ModelError> {
    error.filter(|error| !error.is_null()).map_or(Ok(()), |error| Err(of_object(error)))
}

/// An error response of a provider.
struct Failure {
    message: String,
    /// The provider's error code; empty if there is none.
    code: String,
    /// The provider's error type and status name; empty if there are none.
    kind: String,
}

impl Failure {
    fn read(value: &Value, body: &[u8]) -> Self {
        let error = value.get("error").unwrap_or(value);
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let mut message =
            [error.get("message"), value.get("message"), value.get("detail")].into_iter().map(text).find(|text| !text.is_empty());
        if let Value::String(whole) = error {
            message = Some(whole.clone());
        }
        // Routers such as OpenRouter wrap the error of the upstream provider.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
            message = Some(format!("{}: {raw}", message.unwrap_or_default()));
        }
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body[..body.len().min(4000)]).into_owned());
        let message = printable::shorten_words(&printable::escape_line(message.trim()), 400);
        Self {
            message,
            code: text(error.get("code")),
            kind: [text(error.get("type")), text(error.get("status"))].join(" ").trim().to_owned(),
        }
    }

    /// Classifies the error. The first match wins, because providers use the same status for several kinds of errors.
    fn judge(self, status: u16, retry_after: Option<Duration>) -> ModelError {
        let codes = format!("{} {}", self.code, self.kind).to_ascii_lowercase();
        let words = self.message.to_ascii_lowercase();
        let named = |parts: &[&str]| parts.iter().any(|part| codes.contains(part));
        let mentions = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
        let message = if self.message.is_empty() { format!("HTTP status {status}") } else { self.message };
        if named(&["context_length", "string_above_max"]) || mentions(&CONTEXT_LENGTH) {
            return ModelError::ContextLength(message);
        }
        if status == 402 || named(&["insufficient_quota", "billing", "credit"]) || mentions(&QUOTA) {
            return ModelError::Quota(message);
        }
        if named(&["content_filter", "content_policy"]) || mentions(&FILTER) {
            return ModelError::Filter(message);
        }
        if matches!(status, 401 | 403)
            || named(&["authentication", "invalid_api_key", "permission_error", "unauthenticated"])
            || mentions(&["api key not valid", "invalid api key"])
        {
            return ModelError::Auth(message);
        }
        // Some providers call every error an `api_error`. With a 4xx status, the request is still at fault.
        let blames_request = (400..500).contains(&status);
        if matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=504 | 520..=529)
            || named(&["overloaded", "rate_limit", "unavailable", "resource_exhausted"])
            || !blames_request && named(&["server_error", "api_error", "internal"])
        {
            return ModelError::Overloaded { message, retry_after };
        }
        if matches!(status, 400 | 404 | 422 | 501 | 0) {
            let unsupported = mentions(&UNSUPPORTED);
            // Anthropic starts the message with the name of the field.
            if unsupported && mentions(&SCHEMA) || mentions(&["output_config.format", "output_format"]) {
                return ModelError::Unsupported { feature: Feature::Schema, message };
            }
            if unsupported && mentions(&["tool", "function call", "functiondeclarations"]) {
                return ModelError::Unsupported { feature: Feature::Tools, message };
            }
        }
        if status == 404 || named(&["not_found"]) {
            return ModelError::NotFound(message);
        }
        if (300..400).contains(&status) {
            return ModelError::Protocol(format!("the URL redirects (HTTP status {status}); use the URL that it redirects to"));
        }
        ModelError::Refused(message)
    }
}

/// Returns the delay from the `retry-after-ms` or `retry-after` header. The latter contains seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|millis| millis.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(after).ok()?;
    Duration::try_from(date.timestamp().duration_since(jiff::Timestamp::now())).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(status: u16, body: &Value) -> ModelError {
        of_response(status, &HeaderMap::new(), body.to_string().as_bytes())
    }

    #[test]
    fn refusals_are_told_apart() {
        let cases = [
            (
                401,
                json!({"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "invalid_api_key"}}),
                "auth",
            ),
            (401, json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}), "auth"),
            (
                400,
                json!([{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}]),
                "auth",
            ),
            (
                429,
                json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}}),
                "quota",
            ),
            (402, json!({"error": {"message": "Insufficient credits", "code": 402}}), "quota"),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}),
                "quota",
            ),
            (
                400,
                json!({"error": {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}}),
                "context_length",
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
                "context_length",
            ),
            (
                400,
                json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}),
                "context_length",
            ),
            (429, json!({"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}), "overloaded"),
            (529, json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), "overloaded"),
            (503, json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}), "overloaded"),
            (404, json!({"error": {"message": "model 'x' not found", "type": "not_found_error"}}), "model_not_found"),
            (400, json!({"error": {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}}), "unsupported"),
            (400, json!({"error": {"message": "gemma:2b does not support tools", "type": "api_error", "code": null}}), "unsupported"),
            (200, json!({"error": {"message": "Internal server error", "type": "api_error"}}), "overloaded"),
            (
                400,
                json!({"error": {"message": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."}}),
                "unsupported",
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"}}),
                "unsupported",
            ),
            (404, json!({"error": {"message": "No endpoints found that support tool use.", "code": 404}}), "unsupported"),
            (400, json!({"error": {"message": "temperature must be at most 2"}}), "refused"),
            (301, json!({}), "protocol"),
            (400, json!({"error": {"message": "flagged", "code": "content_filter"}}), "filter"),
        ];
        for (status, body, kind) in cases {
            assert_eq!(judged(status, &body).kind(), kind, "{body}");
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let message = "Function calling with a response mime type: 'application/json' is unsupported";
        let error = judged(400, &json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}));
        assert!(matches!(error, ModelError::Unsupported { feature: Feature::Schema, .. }), "{error}");
    }

    #[test]
    fn a_page_instead_of_json_is_shown_by_its_beginning() {
        let error = of_response(502, &HeaderMap::new(), b"<html>\x1b[31mbad gateway</html>");
        assert!(
            matches!(&error, ModelError::Overloaded { message, .. } if message.contains("bad gateway") && !message.contains('\x1b')),
            "{error}"
        );
    }

    #[test]
    fn the_wait_is_seconds_or_a_date() {
        let wait = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            retry_after(&headers)
        };
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(wait("retry-after", "Sat, 01 Jan 2000 00:00:00 GMT"), None);
        assert!(wait("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT").is_some());
        assert_eq!(wait("retry-after", "soon"), None);
    }
}
