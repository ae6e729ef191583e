use super::*;

/// The arguments schema `{x: schema}` as a tool would have it, checked.
fn converted(schema: &Value, components: &Value, inline: bool) -> Result<Value, String> {
    let root = json!({"openapi": "3.0.3", "paths": {}, "components": {"schemas": components}, "schema": schema});
    let document = Document::new(&root).expect("a document");
    let mut patterns = Patterns::default();
    let mut converter = Converter::new(&document, &mut patterns, inline);
    let schema = converter.convert(&root["schema"]).map_err(|obstacle| match obstacle {
        Obstacle::TooLarge => "too large".to_owned(),
        Obstacle::Reason(reason) => reason,
        Obstacle::Definition(error) => error.message,
    })?;
    let definitions = converter.definitions([&schema]);
    let mut whole = json!({"type": "object", "properties": {"x": schema.clone()}});
    let mut shown = schema;
    if !definitions.is_empty() {
        whole["$defs"] = Value::Object(definitions.clone());
        shown["$defs"] = Value::Object(definitions);
    }
    Schema::new(whole).map_err(|error| error.to_string())?;
    Ok(shown)
}

fn plain(schema: &Value) -> Value {
    converted(schema, &json!({}), true).expect("a schema")
}

#[test]
fn the_older_dialect_is_translated() {
    for (old, new) in [
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}), json!({"type": "integer", "exclusiveMinimum": 1})),
        (json!({"type": "integer", "maximum": 9, "exclusiveMaximum": false}), json!({"type": "integer", "maximum": 9})),
        (json!({"type": "number", "exclusiveMaximum": 9}), json!({"type": "number", "exclusiveMaximum": 9})),
        (
            json!({"type": "string", "format": "date", "example": "x", "xml": {}, "x-y": 1, "title": "T"}),
            json!({"type": "string", "format": "date"}),
        ),
        (json!({"type": "string", "pattern": "^(?!a)b$"}), json!({"type": "string"})),
        (json!({"type": "string", "pattern": "^[a-z]+$"}), json!({"type": "string", "pattern": "^[a-z]+$"})),
        (json!({"type": "string", "required": true}), json!({"type": "string"})),
        (
            json!({"type": "object", "required": ["id", "a", "a"], "properties": {"id": {"type": "integer", "readOnly": true}, "a": {}}}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ),
    ] {
        assert_eq!(plain(&old), new, "{old}");
    }
}

#[test]
fn defaults_are_words_so_that_nothing_is_reset() {
    assert_eq!(plain(&json!({"type": "boolean", "default": false})), json!({"type": "boolean", "description": "Default: false."}));
    assert_eq!(
        plain(&json!({"type": "integer", "description": "How many", "default": 30})),
        json!({"type": "integer", "description": "How many. Default: 30."})
    );
    assert_eq!(plain(&json!({"description": "The default is 3", "default": 3})), json!({"description": "The default is 3"}));
}

#[test]
fn properties_may_be_named_like_keywords() {
    let schema = json!({"type": "object", "properties": {"example": {"type": "string"}, "$ref": {"type": "string"}, "nullable": {"type": "boolean"}}});
    assert_eq!(plain(&schema), schema);
}

#[test]
fn references_are_written_out() {
    let components =
        json!({"Name": {"type": "string", "maxLength": 9}, "Pet": {"properties": {"name": {"$ref": "#/components/schemas/Name"}}}});
    let pet = json!({"$ref": "#/components/schemas/Pet"});
    assert_eq!(converted(&pet, &components, true), Ok(json!({"properties": {"name": {"type": "string", "maxLength": 9}}})));
    let referring = converted(&pet, &components, false).expect("a schema");
    assert_eq!(referring["$ref"], "#/$defs/Pet");
    assert_eq!(referring["$defs"]["Pet"]["properties"]["name"], json!({"$ref": "#/$defs/Name"}));
    let beside = json!({"$ref": "#/components/schemas/Name", "description": "Mine"});
    assert_eq!(converted(&beside, &components, true), Ok(json!({"type": "string", "maxLength": 9, "description": "Mine"})));
    let beside = json!({"$ref": "#/components/schemas/Name", "nullable": true, "default": "Rex"});
    assert_eq!(
        converted(&beside, &components, true),
        Ok(json!({"type": ["string", "null"], "maxLength": 9, "description": "Default: Rex."}))
    );
}

#[test]
fn what_refers_to_itself_becomes_a_definition() {
    let components = json!({
        "Comment": {"type": "object", "properties": {"text": {"type": "string"}, "thread": {"$ref": "#/components/schemas/Thread"}}},
        "Thread": {"type": "array", "items": {"$ref": "#/components/schemas/Comment"}},
    });
    let thread = converted(&json!({"$ref": "#/components/schemas/Thread"}), &components, true).expect("a schema");
    assert_eq!(
        thread,
        json!({"$ref": "#/$defs/Thread", "$defs": {"Thread": {"type": "array", "items": {"type": "object", "properties": {
        "text": {"type": "string"}, "thread": {"$ref": "#/$defs/Thread"}}}}}})
    );
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    let components = json!({
        "Loop": {"$ref": "#/components/schemas/Loop"},
        "All": {"allOf": [{"$ref": "#/components/schemas/All"}, {"type": "object"}]},
    });
    for (reference, reason) in [
        ("other.yaml#/Pet", "outside the document"),
        ("https://x.example/pet.json", "outside the document"),
        ("#/components/schemas/Gone", "cannot be resolved"),
        ("#anchor", "cannot be resolved"),
        ("#/components/schemas/Loop", "leads back to itself"),
        ("#/components/schemas/All", "leads back to itself"),
    ] {
        let refused = converted(&json!({"$ref": reference}), &components, true).expect_err("refused");
        assert!(refused.contains(reason), "{reference}: {refused}");
    }
}

#[test]
fn what_would_explode_stays_a_reference() {
    let mut components = json!({"s0": {"type": "string"}});
    for level in 1..20 {
        let below = json!({"$ref": format!("#/components/schemas/s{}", level - 1)});
        components[format!("s{level}")] = json!({"properties": {"a": below, "b": below}});
    }
    let schema = json!({"$ref": "#/components/schemas/s19"});
    assert_eq!(converted(&schema, &components, true), Err("too large".into()));
    // As references it is small, but still more work than Helve does for one call.
    assert!(converted(&schema, &components, false).is_err_and(|error| error.contains("combinations of alternatives")));
    assert!(converted(&json!({"$ref": "#/components/schemas/s15"}), &components, false).is_ok());
}

#[test]
fn a_long_chain_of_references_is_no_danger() {
    let mut components = json!({"s0": {"type": "string"}});
    for level in 1..5_000 {
        components[format!("s{level}")] = json!({"properties": {"a": {"$ref": format!("#/components/schemas/s{}", level - 1)}}});
    }
    let schema = json!({"$ref": "#/components/schemas/s4999"});
    assert_eq!(converted(&schema, &components, true), Err("too large".into()));
    assert_eq!(converted(&schema, &components, false), Err("its schemas are nested too deeply".into()));
}
