use proptest::prelude::*;

use super::*;

fn schema(value: Value) -> Schema {
    Schema::new(value).expect("a sound schema")
}

fn fitted(schema: &Schema, mut arguments: Value) -> Result<Value, Vec<String>> {
    match schema.fit(&mut arguments) {
        Ok(()) => Ok(arguments),
        Err(problems) => Err(problems.iter().map(ToString::to_string).collect()),
    }
}

/// S31: patterns run in linear time, or the schema is refused when it is registered.
#[test]
fn patterns_cannot_take_long() {
    let greedy = schema(json!({"type": "string", "pattern": "(a+)+$"}));
    assert!(!greedy.is_valid(&json!("a".repeat(50) + "!")));
    let long = json!("a".repeat(100_000) + "!");
    assert!(!greedy.is_valid(&long));
    // A backtracking engine would not come back from either.
    for pattern in ["a{1,10000}{1,10000}", "(?=a)b", r"(a)\1"] {
        assert!(matches!(Schema::new(json!({"pattern": pattern})), Err(SchemaError::Invalid { .. })), "{pattern}");
    }
    let words: Vec<_> = (0..10_000).map(|word| format!("word{word}")).collect();
    assert!(matches!(Schema::new(json!({"pattern": words.join("|")})), Err(SchemaError::Invalid { .. })));
}

/// S32: nothing outside the document is ever looked at, and nothing inside goes round in circles.
#[test]
fn references_stay_inside_and_end() {
    for target in ["http://169.254.169.254/", "file:///etc/passwd", "other.json#/x", "//host/x", "urn:x:y"] {
        let refused = Schema::new(json!({"properties": {"a": {"$ref": target}}}));
        assert!(matches!(&refused, Err(SchemaError::OutsideReference { at, .. }) if at == "/properties/a/$ref"), "{refused:?}");
        assert!(Schema::new(json!({"$dynamicRef": target})).is_err());
        assert!(Schema::new(json!({"$schema": target})).is_err());
    }
    for endless in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}),
        json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"$anchor": "me", "oneOf": [{"$ref": "#me"}]}),
    ] {
        assert!(matches!(Schema::new(endless.clone()), Err(SchemaError::EndlessReference { .. })), "{endless}");
    }
    assert!(matches!(Schema::new(json!({"$ref": "#/nowhere"})), Err(SchemaError::Invalid { .. })));
    let large = json!({"description": "x".repeat(10 << 20)});
    assert!(matches!(Schema::new(large), Err(SchemaError::Size(_))));
}

#[test]
fn a_tree_may_refer_to_itself() {
    let tree =
        schema(json!({"type": "object", "properties": {"left": {"$ref": "#"}, "children": {"type": "array", "items": {"$ref": "#"}}}}));
    assert!(tree.is_valid(&json!({"left": {"left": {}}, "children": [{"children": []}]})));
    assert!(!tree.is_valid(&json!({"left": {"left": 5}})));
}

#[test]
fn a_small_schema_cannot_ask_for_endless_work() {
    let mut definitions = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert("d30".into(), json!({"type": "null"}));
    assert!(matches!(Schema::new(json!({"$ref": "#/$defs/d0", "$defs": definitions})), Err(SchemaError::TooComplex { .. })));

    let mut definitions = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"properties": {"x": {"$ref": format!("#/$defs/d{}", level + 1)}}});
        definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d30".into(), json!({"type": "null"}));
    assert!(matches!(Schema::new(json!({"$ref": "#/$defs/d0", "$defs": definitions})), Err(SchemaError::TooComplex { .. })));
}

#[test]
fn what_is_no_schema_is_refused_with_the_place() {
    let refused = Schema::new(json!({"properties": {"a": {"type": "strin"}}})).expect_err("no such type");
    assert!(refused.to_string().contains("/properties/a/type"), "{refused}");
    assert!(Schema::new(json!({"required": "a"})).is_err());
    assert!(Schema::new(json!("object")).is_err());
}

#[test]
fn wrong_types_are_read_where_there_is_one_reading() {
    let shape = schema(json!({"type": "object", "properties": {
        "count": {"type": "integer"}, "ratio": {"type": "number"}, "on": {"type": "boolean"}, "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "integer"}}, "where": {"type": "object", "properties": {"x": {"type": "number"}}},
        "maybe": {"type": ["integer", "null"]}, "level": {"enum": [1, 2, "high"]}, "either": {"type": ["integer", "string"]},
        "form": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "size": {"$ref": "#/$defs/size"}},
        "$defs": {"size": {"type": "integer"}}}));
    for (sent, read) in [
        (json!({"count": "30"}), json!({"count": 30})),
        (json!({"count": 30.0}), json!({"count": 30})),
        (json!({"ratio": " 1.5 "}), json!({"ratio": 1.5})),
        (json!({"on": "true"}), json!({"on": true})),
        (json!({"name": 5}), json!({"name": "5"})),
        (json!({"tags": "[1, \"2\"]"}), json!({"tags": [1, 2]})),
        (json!({"where": "{\"x\": \"3\"}"}), json!({"where": {"x": 3}})),
        (json!({"maybe": "null"}), json!({"maybe": null})),
        (json!({"level": "2"}), json!({"level": 2})),
        (json!({"either": "5"}), json!({"either": "5"})),
        (json!({"form": "true"}), json!({"form": true})),
        (json!({"size": "7"}), json!({"size": 7})),
        (json!({"count": null}), json!({})),
        (json!("{\"count\": 1}"), json!({"count": 1})),
        (json!(null), json!({})),
        (json!(""), json!({})),
    ] {
        assert_eq!(fitted(&shape, sent.clone()), Ok(read), "{sent}");
    }
    for sent in [
        json!({"count": "thirty"}),
        json!({"count": 1.5}),
        json!({"count": "1.5"}),
        json!({"on": "yes"}),
        json!({"on": 1}),
        json!({"name": 1.5}),
        json!({"name": ["a"]}),
        json!({"tags": 5}),
        json!({"tags": "5"}),
        json!({"level": "3"}),
        json!([]),
        json!("x"),
    ] {
        assert!(fitted(&shape, sent.clone()).is_err(), "{sent}");
    }
}

#[test]
fn problems_say_where_what_and_what_was_meant() {
    let shape = schema(json!({"type": "object", "required": ["query"], "properties": {
        "query": {"type": "string"}, "count": {"type": "integer", "minimum": 1}, "order": {"enum": ["newest", "oldest"]}}}));
    let problems = fitted(&shape, json!({"querry": "x", "count": "many", "order": "newst"})).expect_err("four problems");
    assert_eq!(
        problems,
        [
            "/querry: unknown argument, expected only `query`, `count`, `order` (did you mean `query`?)",
            "/query: expected a value for this required argument, got nothing",
            "/count: expected integer, got string \"many\"",
            "/order: expected one of \"newest\", \"oldest\", got string \"newst\" (did you mean \"newest\"?)",
        ]
        .map(String::from)
    );
    assert_eq!(fitted(&shape, json!({"query": "x", "count": 0})), Err(vec!["/count: expected 1 or more, got integer 0".into()]));
}

#[test]
fn unknown_arguments_are_refused_unless_the_schema_is_open() {
    let closed = schema(json!({"type": "object", "properties": {"a": {}}}));
    assert!(fitted(&closed, json!({"b": 1})).is_err());
    assert!(fitted(&schema(json!({"type": "object"})), json!({"b": 1})).is_err());
    let strict = schema(json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}));
    assert_eq!(fitted(&strict, json!({"b": 1})).expect_err("unknown").len(), 1, "said once");
    for open in [
        json!({"type": "object", "additionalProperties": true}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "patternProperties": {"^b": {}}}),
        json!({"type": "object", "properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}),
        json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"b": {}}}}}),
    ] {
        assert_eq!(fitted(&schema(open.clone()), json!({"b": 1})), Ok(json!({"b": 1})), "{open}");
    }
}

#[test]
fn defaults_are_filled_in() {
    let shape = schema(json!({"type": "object", "properties": {
        "count": {"type": "integer", "default": 10},
        "page": {"type": "object", "properties": {"size": {"type": "integer", "default": 5}}}}}));
    assert_eq!(fitted(&shape, json!({})), Ok(json!({"count": 10})));
    assert_eq!(fitted(&shape, json!({"count": 3, "page": {}})), Ok(json!({"count": 3, "page": {}})), "only arguments themselves");
}

/// What is stored with an approval must read as the same call again.
#[test]
fn fitting_twice_changes_nothing() {
    let nested =
        schema(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/n", "default": {}}}, "$defs": {"n": {"type": "object",
        "properties": {"b": {"$ref": "#/$defs/n", "default": {}}, "c": {"type": "integer", "default": 1}}}}}));
    let once = fitted(&nested, json!({})).expect("it fits");
    assert_eq!(fitted(&nested, once.clone()), Ok(once));
}

/// A stranger's schema may make a full account of what is wrong endless; ours stays short.
#[test]
fn explaining_is_bounded() {
    let same = json!({"type": "array", "items": {"$ref": "#/$defs/s"}});
    let twice = schema(json!({"$ref": "#/$defs/s", "$defs": {"s": {"anyOf": [same, same, {"type": "string"}]}}}));
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!([deep]);
    }
    assert_eq!(twice.problems(&deep).len(), 1);
    let options: Vec<_> = (0..2_000).map(|number| json!({"const": number})).collect();
    let flat = schema(json!({"type": "array", "items": {"anyOf": options}}));
    assert!(flat.problems(&json!(vec![-1; 2_000])).len() <= 8);
    let names: serde_json::Map<String, Value> = (0..1_500).map(|number| (format!("{number}{}", "x".repeat(100)), json!({}))).collect();
    let wide = schema(json!({"type": "object", "properties": names}));
    let unknown: serde_json::Map<String, Value> = (0..5_000).map(|number| (format!("{number}{}", "y".repeat(100)), json!(1))).collect();
    assert_eq!(fitted(&wide, Value::Object(unknown)).expect_err("unknown").len(), 8);
}

#[test]
fn many_patterns_are_refused_together() {
    let patterns: serde_json::Map<String, Value> =
        (0..65).map(|number| (format!("f{number}"), json!({"pattern": format!("a.*b{number}")}))).collect();
    assert!(matches!(Schema::new(json!({"properties": patterns})), Err(SchemaError::Invalid { .. })));
    let anchors: Vec<_> = (0..65).map(|number| json!({"$anchor": format!("a{number}")})).collect();
    assert!(Schema::new(json!({"anyOf": anchors})).is_err());
}

#[test]
fn the_form_that_was_meant_is_explained() {
    let shapes = schema(json!({"type": "object", "properties": {"shape": {"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "round"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
        {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}]}}}));
    assert_eq!(
        fitted(&shapes, json!({"shape": {"kind": "round", "radius": "far"}})),
        Err(vec!["/shape/radius: expected number, got string \"far\"".into()])
    );
    assert_eq!(
        fitted(&shapes, json!({"shape": {"kind": "oval"}})),
        Err(vec!["/shape: expected a value of one of the allowed forms, got object with 1 fields".into()])
    );
}

#[test]
fn schemas_of_types_are_sound_and_plain() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Search {
        /// Words to look for.
        query: String,
        count: Option<u8>,
        deep: Vec<Search>,
    }
    let made = Schema::of::<Search>();
    assert!(made.value().get("title").is_none() && made.value().get("$schema").is_none());
    assert_eq!(made.value()["properties"]["query"]["description"], "Words to look for.");
    assert_eq!(made.value()["properties"]["count"], json!({"type": ["integer", "null"], "minimum": 0, "maximum": 255}));
    assert!(Schema::new(made.value().clone()).is_ok());
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(Value::from),
        any::<i32>().prop_map(|number| number.to_string().into()),
        "true|false|null|\\[1\\]|[a-z]{0,4}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[abc]", inner, 0..3).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn shape() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["string", "integer", "number", "boolean", "null", "array", "object"]);
    let leaf = prop_oneof![
        name.clone().prop_map(|name| json!({"type": name})),
        prop::collection::vec(name, 1..4).prop_map(|mut names| {
            names.sort_unstable();
            names.dedup();
            json!({"type": names})
        }),
        prop::collection::vec(scalar(), 1..3).prop_map(|mut options| {
            options.sort_by_key(canonical);
            options.dedup_by_key(|option| canonical(option));
            json!({"enum": options})
        }),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::hash_map("[abc]", inner.clone(), 0..3).prop_map(|fields| json!({"type": "object", "properties": fields})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            prop::collection::vec(inner, 1..3).prop_map(|forms| json!({"anyOf": forms})),
        ]
    })
}

proptest! {
    /// A value that fits is never changed (whole numbers may be written as integers: they are the same value).
    #[test]
    fn coercion_never_changes_what_fits(shape in shape(), value in value()) {
        let root = schema(json!({"type": "object", "properties": {"v": shape}}));
        let arguments = json!({"v": value});
        let fits = root.is_valid(&arguments);
        match fitted(&root, arguments.clone()) {
            Ok(read) if fits => prop_assert_eq!(canonical(&read), canonical(&arguments)),
            Ok(read) => prop_assert!(root.is_valid(&read)),
            Err(problems) => {
                prop_assert!(!fits, "{:?}", problems);
                prop_assert!(!problems.is_empty());
            }
        }
    }
}
