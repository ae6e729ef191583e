//! Creates requests from the arguments of calls. Errors in the definition are reported when the definition is read.

use std::collections::BTreeSet;

use helve_core::authored::FieldError;
use helve_core::json::{self, JsonLimits};
use helve_core::{Schema, ToolError, suggest};
use helve_fetch::{HeaderMap, HeaderName, HeaderValue, Reach, Request, header};
use serde_json::{Map, Value};

use crate::address::Address;
use crate::definition::{BodyFormat, HttpDefinition, Method};
use crate::form;
use crate::shape::{Shape, broken, join, unfilled};
use crate::template::{Template, Variables, has_template};

/// Headers that only the HTTP client may set. Other values could desynchronise or misdirect requests.
pub(crate) const FORBIDDEN: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const ACCEPT: HeaderValue = HeaderValue::from_static("application/json, text/plain;q=0.9, */*;q=0.5");

/// The parsed templates of an HTTP tool, which create a request from the arguments of a call.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    method: helve_fetch::Method,
    address: Address,
    query: Vec<(String, Shape)>,
    headers: Vec<(HeaderName, Template)>,
    body: Option<Shape>,
    body_format: BodyFormat,
    rest: RestTarget,
    /// Names of the arguments that a template uses.
    placed: BTreeSet<String>,
}

/// The part of the request that contains the arguments that no template uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestTarget {
    Nowhere,
    Query,
    Body,
}

impl Plan {
    /// Parses the templates of a definition, and checks that they use only parameters of the input schema.
    pub(crate) fn read(definition: &HttpDefinition, input: &Schema) -> Result<Self, FieldError> {
        let address = Address::read(&definition.api_url, "/api_url")?;
        let query = read_query(&definition.query)?;
        let headers = read_headers(definition)?;
        let body = read_body(definition)?;
        let mut named: Vec<(String, BTreeSet<String>)> = vec![("/api_url".to_owned(), address.names())];
        let mut note = |template: &Template, path: &str| named.push((path.to_owned(), template.names()));
        for shape in query.iter().map(|(_, shape)| shape).chain(&body) {
            shape.visit(&mut note);
        }
        headers.iter().zip(definition.headers.keys()).for_each(|((_, template), key)| note(template, &join("/headers", key)));
        check_names(&named, input)?;
        let placed = named.into_iter().flat_map(|(_, names)| names).collect();
        let rest = rest(definition, input, &placed);
        if rest == RestTarget::Body && definition.body_format == BodyFormat::Text {
            return Err(FieldError::new("/body", "a text body needs the field `body`").hint("write `body: \"{{ text }}\"`"));
        }
        let (method, body_format) = (wire_method(definition.method), definition.body_format);
        Ok(Self { method, address, query, headers, body, body_format, rest, placed })
    }

    /// Creates the request of one call, without credentials.
    pub(crate) fn request(&self, arguments: &Value) -> Result<Request, ToolError> {
        let variables = Variables::new(arguments);
        let left: Map<String, Value> = arguments
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| !self.placed.contains(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut url = self.address.fill(&variables)?;
        for (key, shape) in &self.query {
            if let Some(value) = shape.fill(&variables)? {
                form::append(&mut url.query_pairs_mut(), key, &value);
            }
        }
        if self.rest == RestTarget::Query {
            left.iter().for_each(|(key, value)| form::append(&mut url.query_pairs_mut(), key, value));
        }
        let mut request = Request::new(self.method.clone(), url);
        request.reach = Reach::Any;
        let body = match (&self.body, self.rest) {
            (Some(body), _) => body.fill(&variables)?,
            (None, RestTarget::Body) => Some(Value::Object(left)),
            (None, _) => None,
        };
        request.headers.insert(header::ACCEPT, ACCEPT);
        if let Some(body) = body {
            let (kind, bytes) = self.write_body(body);
            request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            request.body = Some(bytes);
        }
        self.fill_headers(&mut request.headers, &variables)?;
        Ok(request)
    }

    fn fill_headers(&self, headers: &mut HeaderMap, variables: &Variables) -> Result<(), ToolError> {
        for (name, template) in &self.headers {
            let text =
                template.value_text(variables).map_err(|error| unfilled(&error, &join("/headers", name.as_str()), &template.names()))?;
            let Some(text) = text else { continue };
            let Some(value) = header_value(&text) else {
                let names: Vec<String> = template.names().iter().map(|name| format!("`{name}`")).collect();
                let message =
                    format!("{} is not allowed in the header `{name}`: a header is one line without control characters", names.join(", "));
                return Err(ToolError::invalid_parameters(message));
            };
            headers.insert(name, value);
        }
        Ok(())
    }

    fn write_body(&self, body: Value) -> (&'static str, Vec<u8>) {
        match (self.body_format, body) {
            (BodyFormat::Json, body) => ("application/json", body.to_string().into_bytes()),
            (BodyFormat::Text, Value::String(text)) => ("text/plain; charset=utf-8", text.into_bytes()),
            (BodyFormat::Text, body) => ("text/plain; charset=utf-8", body.to_string().into_bytes()),
            (BodyFormat::Form, body) => ("application/x-www-form-urlencoded", form::body(&body).into_bytes()),
        }
    }
}

/// Parses the name of a header that a definition may set. `path` is the JSON pointer of the field.
pub(crate) fn read_header_name(name: &str, path: &str) -> Result<HeaderName, FieldError> {
    let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err(FieldError::new(path, format!("`{}` is not a valid header name", name.escape_debug())));
    };
    if FORBIDDEN.contains(&header.as_str()) {
        return Err(FieldError::new(path, format!("the header `{header}` cannot be set; Helve sets it")));
    }
    Ok(header)
}

/// Returns a header value, or `None` if the text is not one line without control characters. This is stricter than HTTP, because some
/// servers decode headers as Latin-1 or Unicode, in which more characters end a line.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = |character: char| character == '\t' || !(character.is_control() || matches!(character, '\u{2028}' | '\u{2029}'));
    text.chars().all(is_plain).then(|| HeaderValue::from_bytes(text.as_bytes()).ok()).flatten()
}

fn read_query(query: &Map<String, Value>) -> Result<Vec<(String, Shape)>, FieldError> {
    let read = |(key, value): (&String, &Value)| {
        let path = join("/query", key);
        if value.is_object() {
            let error = FieldError::new(path, "a query entry must be a string, a number, a boolean or a list of these");
            return Err(error.hint("to send an object as JSON, declare a parameter of type `object` and write `{{ parameter }}`"));
        }
        Ok((key.clone(), Shape::read(value, &path)?))
    };
    query.iter().map(read).collect()
}

fn read_headers(definition: &HttpDefinition) -> Result<Vec<(HeaderName, Template)>, FieldError> {
    let read = |(name, text): (&String, &String)| {
        let path = join("/headers", name);
        let header = read_header_name(name, &path)?;
        let template = Template::new(text).map_err(|why| broken(&path, &why))?;
        if name.eq_ignore_ascii_case("cookie") && !template.is_literal() {
            return Err(FieldError::new(path, "a cookie cannot contain templates, because a value could add other cookies"));
        }
        if template.is_literal() && header_value(text).is_none() {
            return Err(FieldError::new(path, "a header value must be one line without control characters"));
        }
        Ok((header, template))
    };
    definition.headers.iter().map(read).collect()
}

/// Returns whether a text consists of exactly one template.
fn is_single_template(text: &str) -> bool {
    let inside = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    inside.is_some_and(|inside| !inside.contains("{{") && !inside.contains("}}"))
}

fn read_body(definition: &HttpDefinition) -> Result<Option<Shape>, FieldError> {
    let Some(body) = definition.body.as_ref().filter(|body| !body.is_null()) else { return Ok(None) };
    match (definition.body_format, body) {
        // Parse JSON in a string before filling in templates, so that no argument can break out of its quotes.
        (BodyFormat::Json, Value::String(text)) if text.trim_start().starts_with(['{', '[']) && !text.trim_start().starts_with("{{") => {
            let parsed = json::parse(text.as_bytes(), JsonLimits::ARGUMENTS).map_err(|error| {
                let message = format!("the body looks like JSON but is invalid: {error}");
                FieldError::new("/body", message).hint("put templates in quotes: `\"{{ x }}\"` keeps the type of its argument")
            })?;
            Shape::read(&parsed, "/body").map(Some)
        }
        // In `a=1&b={{ x }}&c=2` a value could add entries. A single template is allowed: its value is the whole form.
        (BodyFormat::Form, Value::String(text)) if has_template(text) && !is_single_template(text) => {
            let error = FieldError::new("/body", "a form written as text cannot contain templates");
            Err(error.hint("write `body: {name: \"{{ name }}\"}`"))
        }
        (BodyFormat::Text, body) if !body.is_string() => Err(FieldError::new("/body", "a text body must be a string")),
        (BodyFormat::Form, Value::Object(_) | Value::String(_)) | (BodyFormat::Json | BodyFormat::Text, _) => {
            Shape::read(body, "/body").map(Some)
        }
        (BodyFormat::Form, _) => Err(FieldError::new("/body", "the body of a form must be an object")),
    }
}

/// Rejects templates that use unknown parameters. `named` lists the fields with the variables of their templates.
fn check_names(named: &[(String, BTreeSet<String>)], input: &Schema) -> Result<(), FieldError> {
    let schema = input.value();
    let open = is_open(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    let known = || properties.into_iter().flat_map(Map::keys).map(String::as_str);
    for (path, names) in named {
        if let Some(unknown) = names.iter().find(|name| !open && !known().any(|known| known == name.as_str())) {
            let error = FieldError::new(path, format!("unknown parameter `{unknown}`"));
            let near = suggest::nearest(unknown, known()).map(|near| format!("did you mean `{near}`?"));
            return Err(error.hint(near.unwrap_or_else(|| format!("add `{unknown}` to `parameters`"))));
        }
    }
    Ok(())
}

/// Returns whether the schema may allow arguments that it does not list.
fn is_open(schema: &Value) -> bool {
    let says = |key: &str| schema.get(key).is_some();
    let more = schema.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false));
    more || ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"].into_iter().any(says)
}

fn rest(definition: &HttpDefinition, input: &Schema, placed: &BTreeSet<String>) -> RestTarget {
    let properties = input.value().get("properties").and_then(Value::as_object);
    let unplaced = is_open(input.value()) || properties.is_some_and(|all| all.keys().any(|name| !placed.contains(name)));
    match definition.method {
        _ if !unplaced => RestTarget::Nowhere,
        Method::Post | Method::Put | Method::Patch if definition.body.is_none() => RestTarget::Body,
        Method::Get | Method::Head | Method::Delete if definition.query.is_empty() && definition.body.is_none() => RestTarget::Query,
        _ => RestTarget::Nowhere,
    }
}

fn wire_method(method: Method) -> helve_fetch::Method {
    match method {
        Method::Get => helve_fetch::Method::GET,
        Method::Head => helve_fetch::Method::HEAD,
        Method::Post => helve_fetch::Method::POST,
        Method::Put => helve_fetch::Method::PUT,
        Method::Patch => helve_fetch::Method::PATCH,
        Method::Delete => helve_fetch::Method::DELETE,
    }
}

#[cfg(test)]
mod tests;
