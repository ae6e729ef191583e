//! The body of a request: its properties as arguments of their own where that is possible, else as one argument.

use serde_json::{Map, Value, json};

use super::Obstacle;
use super::arguments::{Arguments, Place, identifier};
use super::document::{Document, Operation, shown};
use super::schema::Converter;
use crate::definition::BodyFormat;

/// How the body of a tool is written.
#[derive(Default)]
pub(super) struct Body {
    pub value: Option<Value>,
    pub format: BodyFormat,
    /// The type to send, where the format does not say it.
    pub content_type: Option<String>,
    /// What was left out.
    pub note: Option<String>,
}

/// Turns the body of an operation into arguments.
pub(super) fn place<'d>(
    document: &Document<'d>,
    operation: &Operation<'d>,
    converter: &mut Converter<'_, 'd>,
    arguments: &mut Arguments,
) -> Result<Body, Obstacle> {
    let Some(request) = operation.fields.get("requestBody") else { return Ok(Body::default()) };
    let request = document.follow(request)?;
    let content = request.get("content").and_then(Value::as_object).filter(|content| !content.is_empty());
    let Some(content) = content else { return Ok(Body::default()) };
    let required = request.get("required") == Some(&Value::Bool(true));
    if operation.reads() {
        if required {
            return Err(format!("a {} request with a body cannot be sent", operation.verb).into());
        }
        let note = format!("The body was left out: {} requests have none.", operation.verb);
        return Ok(Body { note: Some(note), ..Body::default() });
    }
    let (media, format, kind) = choose(content)?;
    let schema = match media.get("schema") {
        Some(schema) if format != BodyFormat::Text => converter.convert(schema)?,
        _ if format == BodyFormat::Text => json!({"type": "string"}),
        _ => json!({}),
    };
    let content_type =
        (!matches!(kind, "application/json" | "application/x-www-form-urlencoded" | "text/plain" | "*/*")).then(|| kind.to_owned());
    let value = match parts(converter.opened(&schema), arguments) {
        Some(parts) => {
            let template = |(name, schema, required): (String, Value, bool)| {
                let template = arguments.add(&name, Place::Body, schema, required);
                (name, json!(template))
            };
            Value::Object(parts.into_iter().map(template).collect())
        }
        None => json!(arguments.add("body", Place::Body, whole(schema, request), required)),
    };
    Ok(Body { value: Some(value), format, content_type, note: None })
}

/// The first of the types that tools can write.
fn choose<'d>(content: &'d Map<String, Value>) -> Result<(&'d Value, BodyFormat, &'d str), String> {
    type Fits = fn(&str) -> bool;
    let wanted: [(Fits, BodyFormat); 4] = [
        (|kind| matches!(kind, "application/json" | "*/*" | "application/*"), BodyFormat::Json),
        (|kind| kind.ends_with("+json"), BodyFormat::Json),
        (|kind| kind == "application/x-www-form-urlencoded", BodyFormat::Form),
        (|kind| kind.starts_with("text/"), BodyFormat::Text),
    ];
    let bare = |kind: &'d str| kind.split(';').next().unwrap_or_default().trim();
    for (fits, format) in wanted {
        let found = content.iter().map(|(kind, media)| (bare(kind), media)).find(|(kind, _)| fits(&kind.to_ascii_lowercase()));
        if let Some((kind, media)) = found {
            let kind = if kind.contains('*') { "*/*" } else { kind };
            // It will be a header.
            let sendable = |byte: u8| byte.is_ascii_graphic() && !b"{}\"".contains(&byte);
            return if kind.bytes().all(sendable) { Ok((media, format, kind)) } else { Err("the type of its body is not one".into()) };
        }
    }
    let kinds: Vec<String> = content.keys().take(3).map(|kind| shown(kind)).collect();
    Err(format!("its body is {}, and tools send JSON, forms or text", kinds.join(" or ")))
}

/// The properties of a body, if the body is nothing but them and none is named like another argument.
fn parts(schema: &Value, arguments: &Arguments) -> Option<Vec<(String, Value, bool)>> {
    let fields = schema.as_object()?;
    let properties = fields.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    let plain = fields.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value == "object",
        "additionalProperties" => *value == Value::Bool(false),
        "properties" | "required" | "description" => true,
        _ => false,
    });
    let mut names: Vec<String> = properties.keys().map(|name| identifier(name, Place::Body)).collect();
    let clash = names.iter().any(|name| arguments.has(name));
    names.sort_unstable();
    if !plain || clash || names.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let required = fields.get("required").and_then(Value::as_array);
    // Something required that is not described could never be given.
    if required.is_some_and(|required| required.iter().any(|name| name.as_str().is_none_or(|name| !properties.contains_key(name)))) {
        return None;
    }
    let needed = |name: &String| required.is_some_and(|required| required.iter().any(|required| required == name));
    Some(properties.iter().map(|(name, schema)| (name.clone(), schema.clone(), needed(name))).collect())
}

/// The schema of the body as one argument.
fn whole(mut schema: Value, request: &Value) -> Value {
    let words = request.get("description").and_then(Value::as_str).unwrap_or("The body of the request.");
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("description").or_insert_with(|| json!(super::text::clean(words, 400)));
    }
    schema
}
