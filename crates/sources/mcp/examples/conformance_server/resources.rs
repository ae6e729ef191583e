//! Resources: a text, an image, one to watch, and a template.

use helve_mcp_wire::RpcError;
use serde_json::{Value, json};

use crate::content::PNG;
use crate::invalid;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

pub fn list() -> Value {
    let resource = |uri: &str, name: &str, kind: &str| json!({"uri": uri, "name": name, "description": name, "mimeType": kind});
    json!({"resources": [
        resource(TEXT, "A text that never changes", "text/plain"),
        resource(BINARY, "An image that never changes", "image/png"),
        resource(WATCHED, "A text to subscribe to", "text/plain"),
    ]})
}

pub fn templates() -> Value {
    let (before, after) = TEMPLATE;
    json!({"resourceTemplates": [{"uriTemplate": format!("{before}{{id}}{after}"), "name": "Data by id", "mimeType": "application/json"}]})
}

pub fn read(params: &Value) -> Result<Value, RpcError> {
    let uri = params["uri"].as_str().ok_or_else(|| invalid("a resource is named in `uri`"))?;
    let text = |text: &str| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    let of_template = || uri.strip_prefix(TEMPLATE.0)?.strip_suffix(TEMPLATE.1).filter(|id| !id.is_empty() && !id.contains('/'));
    let content = match uri {
        TEXT => text("This is the content of the static text resource."),
        WATCHED => text("Nothing has happened."),
        BINARY => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => match of_template() {
            Some(id) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
            }
            None => return Err(RpcError { data: Some(json!({"uri": uri})), ..invalid(format!("there is no resource `{uri}`")) }),
        },
    };
    Ok(json!({"contents": [content]}))
}
