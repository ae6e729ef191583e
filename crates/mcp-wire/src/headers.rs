//! HTTP headers that repeat parts of a request, so that proxies can route the request without parsing the body. The client writes the
//! headers, and the server compares them with the body.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The names of the protocol's HTTP headers; their values are in [`HEADERS`].
#[derive(Debug)]
pub struct HeaderNames {
    /// The header with the protocol version of a request.
    pub version: &'static str,
    /// The header with the id of a legacy session.
    pub session: &'static str,
    /// The header with the method of a request.
    pub method: &'static str,
    /// The header with the name of the tool or prompt, the URI of the resource, or the id of the task of a request.
    pub name: &'static str,
    /// The prefix of the headers that repeat an argument of a tool call.
    pub param: &'static str,
    /// The header with the id of the last event that the client received before a stream broke.
    pub last_event: &'static str,
}

/// The names of the protocol's HTTP headers, in lower case.
pub const HEADERS: HeaderNames = HeaderNames {
    version: "mcp-protocol-version",
    session: "mcp-session-id",
    method: "mcp-method",
    name: "mcp-name",
    param: "mcp-param-",
    last_event: "last-event-id",
};

/// The JSON Schema keyword that names the header of an argument.
const KEYWORD: &str = "x-mcp-header";
const BEGIN: &str = "=?base64?";
const END: &str = "?=";

/// Returns the value of the header [`HeaderNames::name`], not yet encoded, or `None` if a request with this method has no such header.
#[must_use]
pub fn name_of<'a>(method: &str, params: Option<&'a Value>) -> Option<&'a str> {
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params?.get(field)?.as_str()
}

/// Encodes a text as a header value: as Base64, unless it is plain ASCII.
#[must_use]
pub fn encode_header(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) && text.trim() == text;
    // A text that looks encoded must be encoded, or the server would decode it.
    let plain = plain && !(text.starts_with(BEGIN) && text.ends_with(END));
    if plain { Cow::Borrowed(text) } else { Cow::Owned(format!("{BEGIN}{}{END}", STANDARD.encode(text))) }
}

/// Decodes a header value that [`encode_header`] encoded. Returns `None` if the value is invalid.
#[must_use]
pub fn decode_header(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim_matches([' ', '\t']);
    if !is_encoded(value) {
        return value.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7e)).then_some(Cow::Borrowed(value));
    }
    let bytes = STANDARD.decode(&value[BEGIN.len()..value.len() - END.len()]).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn is_encoded(text: &str) -> bool {
    text.len() >= BEGIN.len() + END.len() && text.starts_with(BEGIN) && text.ends_with(END)
}

/// An argument of a tool that an HTTP header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The full header name, in lower case.
    pub header: String,
    /// The path of the argument: property names, outermost first.
    pub path: Vec<String>,
}

/// Why the header names in an input schema are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{KEYWORD}` at `{path}` {reason}")]
pub struct HeaderParamError {
    /// The path of the property in the schema, with dots between the names.
    pub path: String,
    /// What is wrong, as the rest of a sentence that starts with the keyword.
    pub reason: &'static str,
}

impl HeaderParam {
    /// Collects the header parameters in the `inputSchema` of a tool.
    ///
    /// # Errors
    /// Returns an error if a header name in the schema is invalid. Such a tool must not be used over HTTP.
    pub fn of(schema: &Value) -> Result<Vec<Self>, HeaderParamError> {
        let mut found = Vec::new();
        walk(schema, &mut Vec::new(), true, &mut found)?;
        Ok(found)
    }

    /// Returns the encoded header value for these arguments, or `None` if the argument is missing, null, a list or an object.
    #[must_use]
    pub fn value(&self, arguments: &Value) -> Option<String> {
        plain(self.argument(arguments)?).map(|text| encode_header(&text).into_owned())
    }

    /// Returns whether the header value, or its absence, matches the arguments.
    #[must_use]
    pub fn fits(&self, arguments: &Value, header: Option<&str>) -> bool {
        let Some(argument) = self.argument(arguments) else { return header.is_none() };
        // Lists and objects have no header. Validation reports that they do not match the schema.
        let Some(expected) = plain(argument) else { return header.is_none() };
        let Some(given) = header.and_then(decode_header) else { return false };
        given == expected || argument.as_f64().is_some_and(|number| given.parse() == Ok(number))
    }

    fn argument<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        let found = self.path.iter().try_fold(arguments, |value, name| value.get(name))?;
        (!found.is_null()).then_some(found)
    }
}

fn plain(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
}

/// Collects the header parameters of a schema and its subschemas. Only properties that are reached through `properties` alone may have the
/// keyword, because only they have exactly one value.
fn walk(schema: &Value, path: &mut Vec<String>, reachable: bool, found: &mut Vec<HeaderParam>) -> Result<(), HeaderParamError> {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get(KEYWORD) {
                let param =
                    read(name, fields, path, reachable, found).map_err(|reason| HeaderParamError { path: path.join("."), reason })?;
                found.push(param);
            }
            for (key, value) in fields {
                match key.as_str() {
                    // These contain values, not schemas.
                    "default" | "const" | "enum" | "examples" | KEYWORD => {}
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                        for (name, inner) in value.as_object().into_iter().flatten() {
                            path.push(name.clone());
                            walk(inner, path, reachable && key == "properties", found)?;
                            path.pop();
                        }
                    }
                    _ => walk(value, path, false, found)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| walk(item, path, false, found)),
        _ => Ok(()),
    }
}

fn read(
    name: &Value,
    schema: &Map<String, Value>,
    path: &[String],
    reachable: bool,
    found: &[HeaderParam],
) -> Result<HeaderParam, &'static str> {
    let name = name.as_str().ok_or("is not a string")?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let header = format!("{}{}", HEADERS.param, name.to_ascii_lowercase());
    if name.is_empty() || !name.bytes().all(is_token) {
        Err("is not a valid header name")
    } else if !reachable || path.is_empty() {
        Err("is not on a property that is reached through `properties` alone")
    } else if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        Err("is not on a string, an integer or a boolean")
    } else if found.iter().any(|other| other.header == header) {
        Err("is used twice")
    } else {
        Ok(HeaderParam { header, path: path.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_come_back_as_they_were_sent() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ] {
            assert_eq!(encode_header(text), value);
            assert_eq!(decode_header(value).as_deref(), Some(text), "{value}");
        }
        assert_eq!(decode_header("  blanks around  ").as_deref(), Some("blanks around"));
        assert_eq!(decode_header("=?base64?SGVsbG8").as_deref(), Some("=?base64?SGVsbG8"), "no end: as it stands");
        for broken in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?=", "a\u{7f}b"] {
            assert_eq!(decode_header(broken), None, "{broken}");
        }
    }

    #[test]
    fn what_a_request_is_about_depends_on_its_method() {
        let params = json!({"name": "n", "uri": "u", "taskId": "t"});
        for (method, name) in [("tools/call", Some("n")), ("resources/read", Some("u")), ("tasks/get", Some("t")), ("tools/list", None)] {
            assert_eq!(name_of(method, Some(&params)), name, "{method}");
        }
        assert_eq!(name_of("tools/call", None), None);
    }

    #[test]
    fn headers_are_compared_with_their_arguments() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
            "x-mcp-header": {"type": "string"},
        }});
        let params = HeaderParam::of(&schema).unwrap();
        let [region, count] = &params[..] else { panic!("{params:?}") };
        assert_eq!((region.header.as_str(), count.path.join(".").as_str()), ("mcp-param-region", "deep.count"));
        let arguments = json!({"region": "süd", "deep": {"count": 42}});
        assert_eq!(region.value(&arguments).as_deref(), Some("=?base64?c8O8ZA==?="));
        assert!(region.fits(&arguments, Some("=?base64?c8O8ZA==?=")));
        for wrong in [None, Some("süd"), Some("north"), Some("=?base64?c8O8ZA?=")] {
            assert!(!region.fits(&arguments, wrong), "{wrong:?}");
        }
        assert!(count.fits(&arguments, Some("42")) && count.fits(&arguments, Some("42.0")) && !count.fits(&arguments, Some("43")));
        for empty in [json!({}), json!({"region": null}), Value::Null] {
            assert_eq!(region.value(&empty), None);
            assert!(region.fits(&empty, None) && !region.fits(&empty, Some("north")), "{empty}");
        }
    }

    #[test]
    fn keywords_in_wrong_places_are_refused() {
        let text = json!({"type": "string", "x-mcp-header": "A"});
        for (properties, reason) in [
            (json!({"a": {"type": "string", "x-mcp-header": ""}}), "not a valid header name"),
            (json!({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}), "not a valid header name"),
            (json!({"a": {"type": "string", "x-mcp-header": 3}}), "not a string"),
            (json!({"a": {"type": "number", "x-mcp-header": "A"}}), "not on a string"),
            (json!({"a": text, "b": {"type": "string", "x-mcp-header": "a"}}), "twice"),
            (json!({"a": {"type": "array", "items": text}}), "is reached"),
            (json!({"a": {"oneOf": [text]}}), "is reached"),
        ] {
            let error = HeaderParam::of(&json!({"properties": properties})).expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(HeaderParam::of(&json!({"x-mcp-header": "A", "type": "string"})).is_err(), "the root is not an argument");
        assert_eq!(HeaderParam::of(&json!({"default": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": 1}]})), Ok(Vec::new()));
    }
}
