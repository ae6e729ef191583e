//! Hostile documents: the import always ends, and its tools are usable.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Words that the import treats specially, so that random documents contain them.
const WORDS: [&str; 44] = [
    "openapi",
    "paths",
    "/a/{b}",
    "get",
    "post",
    "operationId",
    "parameters",
    "name",
    "in",
    "path",
    "query",
    "header",
    "cookie",
    "schema",
    "$ref",
    "#/components/schemas/A",
    "#",
    "#/paths",
    "type",
    "object",
    "array",
    "string",
    "properties",
    "items",
    "required",
    "allOf",
    "anyOf",
    "nullable",
    "enum",
    "requestBody",
    "content",
    "application/json",
    "pattern",
    "(?=a)",
    "default",
    "servers",
    "url",
    "description",
    "components",
    "schemas",
    "A",
    "exclusiveMinimum",
    "minimum",
    "{{ a }}",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(WORDS.as_slice()).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        let fields = prop::collection::vec((word(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
        ]
    })
}

/// All JSON pointers of a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| places(field, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found));
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

fn survives(document: &Value) {
    for fields in [json!({"api_url": "https://x.example"}), json!({})] {
        if let Ok(imported) = import_with(&fields, document) {
            check(&imported);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_survived(document in any_json()) {
        survives(&document);
    }

    #[test]
    fn any_operation_is_survived(shared in any_json(), operation in any_json(), schema in any_json()) {
        survives(&json!({"openapi": "3.0.3", "paths": {"/a/{b}": {"parameters": shared, "post": operation, "get": {"requestBody": schema}},
            "/c": {"put": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}}},
            "components": {"schemas": {"A": schema}}}));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_document_with_parts_replaced_is_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..30)) {
        let mut document = hosting();
        let mut all = Vec::new();
        places(&document, "", &mut all);
        for (index, value) in changes {
            // The first pointer is the document itself.
            let place = &all[1..][index.index(all.len() - 1)];
            if let Some(target) = document.pointer_mut(place) {
                *target = value;
            }
        }
        survives(&document);
    }
}

#[test]
fn a_document_that_would_explode_is_survived() {
    let mut schemas = Map::new();
    for level in 1..60 {
        let below = json!({"$ref": format!("#/components/schemas/s{}", level - 1)});
        schemas.insert(format!("s{level}"), json!({"allOf": [below, {"properties": {"a": below}}], "properties": {"b": below}}));
    }
    schemas.insert("s0".into(), json!({"$ref": "#/components/schemas/s59"}));
    let mut document = small(&json!({}));
    for level in 0..60 {
        let body = json!({"content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/s{level}")}}}});
        document["paths"][format!("/p{level}")] = json!({"post": {"requestBody": body}});
    }
    document["components"] = json!({"schemas": schemas});
    survives(&document);
}

#[test]
fn long_texts_are_cut_in_good_time() {
    let hostile = ["[", "![", "<a", "<!--", "<p>", "&", "[a](", "word. "].map(|piece| piece.repeat(200_000)).join(" ");
    let document = small(&json!({"/p": {"get": {"summary": hostile, "description": hostile, "operationId": hostile, "tags": [hostile],
        "parameters": [{"name": hostile, "in": "query", "description": hostile}]}}}));
    check(&import_with(&json!({}), &document).expect("tools"));
}
