//! Extracts the result from a response.

use helve_core::authored::FieldError;
use helve_core::json::{self, JsonLimits};
use helve_core::{Output, Redactor, ToolError};
use helve_fetch::Response;
use serde_json::{Map, Value, json};

use crate::failure::{excerpt, is_encoded};
use crate::template::{Template, TemplateError, Variables, has_template};

/// Maximum number of JSON values in a response.
const MAX_NODES: usize = 200_000;
/// Maximum depth of the JSON in a response.
const MAX_DEPTH: usize = 64;
/// Maximum number of keys that an error message lists.
const MAX_KEYS: usize = 20;

/// The parsed field `result` of a definition, which extracts the result from a response.
#[derive(Debug, Clone)]
pub(crate) struct ResponseReader {
    selector: ResultSelector,
    /// Whether the response must be JSON.
    json: bool,
    /// Whether the result consists of the headers, as for HEAD requests.
    head: bool,
}

#[derive(Debug, Clone)]
enum ResultSelector {
    All,
    Pointer(String),
    /// The template and its source text.
    Template(Template, String),
}

impl ResponseReader {
    /// Parses the field `result` of a definition.
    pub(crate) fn read(result: Option<&str>, has_output_schema: bool, head: bool) -> Result<Self, FieldError> {
        let wrong = |message: String| {
            FieldError::new("/result", message).hint("write a JSON pointer such as `/items`, or a template such as `{{ items }}`")
        };
        let selector = match result {
            None | Some("") => ResultSelector::All,
            Some(text) if has_template(text) => {
                let template = Template::new(text).map_err(|why| wrong(format!("invalid template: {why}")))?;
                ResultSelector::Template(template, text.to_owned())
            }
            Some(pointer) if pointer.starts_with('/') => {
                let sound = |part: &str| part.starts_with(['0', '1']);
                if !pointer.split('~').skip(1).all(sound) {
                    return Err(wrong(format!("`{pointer}` is not a valid JSON pointer: write `~` as `~0`")));
                }
                ResultSelector::Pointer(pointer.to_owned())
            }
            Some(other) => return Err(wrong(format!("`{other}` is neither a JSON pointer nor a template"))),
        };
        let json = has_output_schema || matches!(selector, ResultSelector::Pointer(_));
        Ok(Self { selector, json, head })
    }

    /// Extracts the result from a response with a success status.
    pub(crate) fn output(&self, response: &Response, redactor: &Redactor) -> Result<Output, ToolError> {
        let content = if self.head { Content::Json(headers(response)) } else { content(response, redactor)? };
        let status = response.status.as_u16();
        let value = match (&self.selector, content) {
            (_, Content::Text(_)) if self.json => return Err(not_json(response, redactor)),
            (ResultSelector::All, Content::Json(value)) => value,
            (ResultSelector::All, Content::Text(text)) => Value::String(text),
            (ResultSelector::Pointer(pointer), Content::Json(mut value)) => match value.pointer_mut(pointer) {
                Some(found) => found.take(),
                None => return Err(missing(&format!("at `{pointer}`"), &value, redactor)),
            },
            (ResultSelector::Pointer(_), Content::Text(_)) => return Err(not_json(response, redactor)),
            (ResultSelector::Template(template, written), Content::Json(value)) => fill(template, written, value, status, redactor)?,
            (ResultSelector::Template(template, written), Content::Text(text)) => {
                let only_text = template.names().iter().all(|name| matches!(name.as_str(), "response" | "status"));
                if !only_text {
                    return Err(not_json(response, redactor));
                }
                fill(template, written, Value::String(text), status, redactor)?
            }
        };
        Ok(Output::data(value).with_metadata("status", json!(status)))
    }
}

enum Content {
    Json(Value),
    Text(String),
}

/// Returns the body as text, or as JSON if the `Content-Type` says so or the body looks like JSON.
fn content(response: &Response, redactor: &Redactor) -> Result<Content, ToolError> {
    let host = host(response);
    if let Some(coding) = is_encoded(response) {
        let message = format!("{host} sent the content encoding `{}`, which was not requested", coding.escape_debug());
        return Err(ToolError::failed(message));
    }
    let kind = kind(response);
    let Ok(text) = str::from_utf8(&response.body) else {
        let size = response.body.len();
        return Err(ToolError::failed(format!("{host} sent {size} bytes of `{}`, which is not text", kind.escape_debug())));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let says_json = kind == "application/json" || kind == "text/json" || kind.ends_with("+json");
    if text.trim().is_empty() || !(says_json || text.trim_start().starts_with(['{', '['])) {
        return Ok(Content::Text(text.to_owned()));
    }
    match json::parse(text.as_bytes(), JsonLimits { bytes: usize::MAX, depth: MAX_DEPTH, nodes: MAX_NODES }) {
        Ok(value) => Ok(Content::Json(value)),
        Err(_) if !says_json => Ok(Content::Text(text.to_owned())),
        Err(error) => {
            let excerpt = excerpt(&response.body, redactor);
            Err(ToolError::failed(format!("{host} sent invalid JSON: {error}: {excerpt}")))
        }
    }
}

/// Renders a template. Its variables are the fields of the response, the whole response as `response`, and the status as `status`.
fn fill(template: &Template, written: &str, response: Value, status: u16, redactor: &Redactor) -> Result<Value, ToolError> {
    let mut variables = Map::from_iter([("status".to_owned(), json!(status))]);
    if let Value::Object(fields) = &response {
        variables.extend(fields.clone());
    }
    variables.insert("response".to_owned(), response);
    let variables = Value::Object(variables);
    let response = || variables.get("response").unwrap_or(&Value::Null);
    match template.value(&Variables::new(&variables)) {
        Ok(Some(value)) => Ok(value),
        Ok(None) | Err(TemplateError::Missing) => Err(missing(&format!("for `{written}`"), response(), redactor)),
        Err(TemplateError::Other(why)) => Err(ToolError::failed(format!("cannot extract the result from the response: {why}"))),
    }
}

fn missing(what: &str, response: &Value, redactor: &Redactor) -> ToolError {
    let has = match response {
        Value::Object(fields) => {
            let keys: Vec<&str> = fields.keys().take(MAX_KEYS).map(String::as_str).collect();
            format!("its fields are {}", keys.join(", "))
        }
        Value::Array(items) => format!("it is a list of {}", items.len()),
        _ => "it is a single value".to_owned(),
    };
    ToolError::failed(format!("the response has no value {what}; {}", excerpt(has.as_bytes(), redactor)))
}

fn not_json(response: &Response, redactor: &Redactor) -> ToolError {
    let host = host(response);
    let kind = kind(response);
    if response.body.trim_ascii().is_empty() {
        return ToolError::failed(format!("{host} sent an empty response instead of JSON"));
    }
    let what = match kind.as_str() {
        "text/html" | "application/xhtml+xml" => "HTML".to_owned(),
        "" => "text".to_owned(),
        other => format!("`{}`", other.escape_debug()),
    };
    ToolError::failed(format!("{host} sent {what} instead of JSON: {}", excerpt(&response.body, redactor)))
}

fn headers(response: &Response) -> Value {
    let text = |(name, value): (&helve_fetch::HeaderName, &helve_fetch::HeaderValue)| {
        Some((name.as_str().to_owned(), Value::from(value.to_str().ok().filter(|_| name != "set-cookie")?)))
    };
    Value::Object(response.headers.iter().filter_map(text).collect())
}

fn kind(response: &Response) -> String {
    let kind = response.header("content-type").unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn host(response: &Response) -> &str {
    response.url.host_str().unwrap_or("the server")
}
