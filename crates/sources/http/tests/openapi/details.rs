//! Single rules of the import, each with a minimal document.

use helve_http::BodyFormat;
use serde_json::{Value, json};

use super::*;

/// The only tool of `POST /p/{id}` with these fields.
fn post(fields: &Value) -> HttpDefinition {
    let mut imported = import_with(&json!({}), &small(&json!({"/p/{id}": {"post": fields}}))).expect("tools");
    check(&imported);
    assert!(imported.skipped.is_empty(), "{:?}", imported.skipped);
    imported.tools.remove(0)
}

/// Why `GET /p` with these fields is skipped.
fn refused(fields: &Value) -> String {
    let imported = import_with(&json!({}), &small(&json!({"/p": {"get": fields}}))).expect("tools");
    imported.skipped.first().map(|skipped| skipped.reason.clone()).unwrap_or_default()
}

fn with_body(kind: &str, schema: &Value) -> HttpDefinition {
    post(&json!({"requestBody": {"content": {kind: {"schema": schema}}}}))
}

#[test]
fn a_body_that_is_nothing_but_properties_is_taken_apart() {
    let tool = with_body(
        "application/json",
        &json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "is-new": {}}}),
    );
    assert_eq!(tool.body, Some(json!({"name": "{{ name }}", "is-new": "{{ is_new }}"})));
    assert_eq!(parameters(&tool)["required"], json!(["id", "name"]));
}

#[test]
fn any_other_body_is_one_argument() {
    for schema in [
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "object", "properties": {"id": {}}}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}),
        json!({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}),
        json!({"type": "object", "properties": {"a-b": {}, "a_b": {}}}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["b"]}),
        json!({"type": ["object", "null"], "properties": {"a": {}}}),
        json!({"type": "object"}),
        json!({}),
    ] {
        assert_eq!(with_body("application/json", &schema).body, Some(json!("{{ body }}")), "{schema}");
    }
    let named_body = post(&json!({"parameters": [{"name": "body", "in": "query"}], "requestBody": {"content": {"application/json": {}}}}));
    assert_eq!((named_body.body, &named_body.query["body"]), (Some(json!("{{ body_body }}")), &json!("{{ body }}")));
}

#[test]
fn bodies_are_written_as_the_document_says() {
    let schema = || json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for (kind, format, content_type) in [
        ("application/json; charset=utf-8", BodyFormat::Json, None),
        ("*/*", BodyFormat::Json, None),
        ("application/merge-patch+json", BodyFormat::Json, Some("application/merge-patch+json")),
        ("application/x-www-form-urlencoded", BodyFormat::Form, None),
    ] {
        let tool = with_body(kind, &schema());
        assert_eq!((tool.body, tool.body_format), (Some(json!({"a": "{{ a }}"})), format), "{kind}");
        assert_eq!(tool.headers.get("Content-Type").map(String::as_str), content_type, "{kind}");
    }
    let text = with_body("text/markdown", &json!({}));
    assert_eq!((text.body, text.body_format), (Some(json!("{{ body }}")), BodyFormat::Text));
    assert!(refused(&json!({"requestBody": {"required": true, "content": {"application/json": {}}}})).contains("GET"));
}

#[test]
fn parameters_of_one_name_are_told_apart() {
    let tool = post(&json!({"parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
        {"name": "id", "in": "query"}, {"name": "Id-", "in": "header", "required": true}]}));
    assert_eq!(tool.api_url, "https://x.example/p/{{ id }}");
    assert_eq!((&tool.query["id"], &*tool.headers["Id-"]), (&json!("{{ id_query }}"), "{{ id_header }}"));
    assert_eq!(parameters(&tool)["required"], json!(["id", "id_header"]));
}

#[test]
fn an_operation_replaces_parameters_of_its_path() {
    let imported = import_with(
        &json!({}),
        &small(&json!({"/p": {
        "parameters": [{"name": "a", "in": "query", "required": true}, {"name": "b", "in": "query"}],
        "get": {"parameters": [{"name": "a", "in": "query", "schema": {"type": "integer"}}]}}})),
    )
    .expect("tools");
    assert_eq!(parameters(&imported.tools[0])["properties"], json!({"a": {"type": "integer"}, "b": {"type": "string"}}));
    assert_eq!(parameters(&imported.tools[0]).get("required"), None);
}

#[test]
fn lists_are_repeated_or_written_as_one_text() {
    let list = |more: Value| {
        let mut parameter =
            json!({"name": "a", "in": "query", "description": "Which", "schema": {"type": "array", "items": {"enum": ["x", "y"]}}});
        parameter.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        parameters(&post(&json!({"parameters": [parameter]})))["properties"]["a"].clone()
    };
    let repeated = json!({"type": "array", "items": {"enum": ["x", "y"]}, "description": "Which"});
    assert_eq!(list(json!({})), repeated);
    assert_eq!(list(json!({"explode": true})), repeated);
    assert_eq!(list(json!({"style": "pipeDelimited", "explode": true})), repeated);
    let text =
        |by: &str| json!({"type": "string", "description": format!("Which. Several values are separated by {by}. Each is one of: x, y.")});
    assert_eq!(list(json!({"explode": false})), text("commas"));
    assert_eq!(list(json!({"style": "spaceDelimited"})), text("spaces"));
    assert_eq!(list(json!({"in": "header"})), text("commas"));
}

#[test]
fn objects_in_a_query_are_spread() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}}});
    let deep = post(&json!({"parameters": [{"name": "f", "in": "query", "required": true, "style": "deepObject", "schema": schema}]}));
    assert_eq!(Value::Object(deep.query.clone()), json!({"f[a]": "{{ f_a }}", "f[b]": "{{ f_b }}"}));
    assert_eq!(parameters(&deep)["required"], json!(["id", "f_a"]));
    assert_eq!(parameters(&deep)["properties"]["f_b"], json!({"type": "integer"}));
    let form = post(&json!({"parameters": [{"name": "f", "in": "query", "schema": schema}]}));
    assert_eq!(Value::Object(form.query), json!({"a": "{{ a }}", "b": "{{ b }}"}));
    let unknown = json!({"name": "f", "in": "query", "required": true, "schema": {"type": "object"}});
    assert_eq!(refused(&json!({"parameters": [unknown]})), "its query parameter `f` is an object, which is not supported there");
}

#[test]
fn a_parameter_may_be_written_as_json() {
    let parameter = |place: &str, kind: &str| {
        let schema = json!({"type": kind, "description": "What"});
        let parameter = json!({"name": "f", "in": place, "content": {"application/json": {"schema": schema}}});
        parameters(&post(&json!({"parameters": [parameter]})))["properties"]["f"].clone()
    };
    let text = json!({"type": "string", "description": "What. Written as JSON."});
    assert_eq!(parameter("query", "array"), text);
    for (place, kind) in [("query", "object"), ("query", "integer"), ("header", "array")] {
        assert_eq!(parameter(place, kind), json!({"type": kind, "description": "What"}));
    }
}

#[test]
fn what_the_definition_sends_is_no_argument() {
    let parameter = |place: &str, name: &str| json!({"name": name, "in": place, "required": true});
    let document = small(&json!({"/p": {"get": {"parameters": [
        parameter("header", "x-api-key"), parameter("header", "Authorization"), parameter("header", "X-Client"), parameter("header", "Host"),
        parameter("header", "X-Other")]}}}));
    let fields = json!({"headers": {"X-Client": "helve"}, "auth_method": {"type": "api_key", "header": "X-API-Key", "value": "secret"}});
    let imported = import_with(&fields, &document).expect("tools");
    assert_eq!(parameters(&imported.tools[0])["required"], json!(["x_other"]));
    assert_eq!(imported.tools[0].headers.keys().map(String::as_str).collect::<Vec<_>>(), ["X-Client", "X-Other"]);
    assert!(imported.tools[0].auth_method.is_some());
}

#[test]
fn nothing_of_the_document_becomes_a_template() {
    for path in ["/a/{{ secret }}", "/a/{{b}", "/a/{b", "/a/b}", "/a/{}", "/a?b={c}", "/a#b", "/a b", "/a/../b"] {
        let imported = import_with(&json!({}), &small(&json!({path: {"get": {}}}))).expect("tools");
        assert!(imported.tools.is_empty() && imported.skipped.len() == 1, "{path}");
    }
    assert!(refused(&json!({"parameters": [{"name": "X {{ a }}", "in": "header", "required": true}]})).contains("not a valid header name"));
    let imported = import_with(&json!({}), &small(&json!({"@evil.example": {"get": {}}}))).expect("tools");
    assert_eq!(imported.tools[0].api_url, "https://x.example/@evil.example");
}

#[test]
fn skipped_operations_say_why() {
    for (fields, reason) in [
        (
            json!({"parameters": [{"$ref": "other.yaml#/a"}]}),
            "its reference `other.yaml#/a` points outside the document; bundle the document first",
        ),
        (json!({"parameters": [{"$ref": "#/a"}]}), "its reference `#/a` cannot be resolved"),
        (json!({"parameters": [{"in": "query"}]}), "one of its parameters has no `name` or no `in`"),
        (json!({"parameters": [{"name": "a", "in": "query", "schema": {"type": "file"}}]}), "its input schema is not supported: "),
        (json!({"parameters": [{"name": "a", "in": "query", "schema": 3}]}), "one of its schemas is not an object"),
    ] {
        let found = refused(&fields);
        assert!(found.starts_with(reason), "{found}");
    }
}

#[test]
fn clashing_names_are_told() {
    let document = small(&json!({"/a": {"get": {"operationId": "get/it"}}, "/b": {"post": {"operationId": "getIt"}}}));
    let imported = import_with(&json!({}), &document).expect("tools");
    assert_eq!(names(&imported), ["get_it_get", "get_it_post"]);
    assert_eq!(imported.notes[1].message, "Named `get_it_post`, because several operations would be named `get_it`.");
}
