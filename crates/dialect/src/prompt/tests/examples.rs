//! Example calls are read back as they were meant, in strict mode.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{FORMS, LANGUAGES, save, search};
use crate::prompt::{Prompt, PromptFormat, PromptTool, example};
use crate::{Content, Mode, ToolTable, parse};

fn check(tool: &PromptTool<'_>) {
    let table = Arc::new(ToolTable::new([(tool.name, tool.parameters.clone())]));
    for form in FORMS {
        for language in LANGUAGES {
            let prompt = Prompt::new(form).language(language);
            let text = prompt.example(tool);
            let items = parse(&text, &form.dialect(), Mode::Strict, &table);
            let [item] = items.as_slice() else { panic!("{items:?}\n{text}") };
            let Content::Call(call) = &item.content else { panic!("{items:?}\n{text}") };
            let meant = example::arguments(tool, form, prompt.words());
            assert_eq!((call.name.as_str(), &call.arguments), (tool.name, &meant), "{text}");
            assert!(call.repairs.is_empty(), "{text}");
        }
    }
}

fn one(parameter: &Value) -> Value {
    json!({"type": "object", "properties": {"value": parameter}, "required": ["value"]})
}

#[test]
fn odd_values_are_read_back() {
    let parameters = [
        json!({}),
        json!(true),
        json!({"type": "string", "default": "true"}),
        json!({"type": "string", "default": "]]> </value></params> <![CDATA[x"}),
        json!({"type": "string", "default": "\"quoted\" \\ & &amp; <b>"}),
        json!({"type": "string", "default": "two\nlines"}),
        json!({"type": "string", "default": " "}),
        json!({"type": "string", "default": ""}),
        json!({"type": ["string", "integer"], "default": 5}),
        json!({"type": ["string", "null"], "default": null}),
        json!({"type": "integer", "default": "10"}),
        json!({"type": "integer", "minimum": 7, "maximum": 9}),
        json!({"type": "integer", "exclusiveMaximum": 0}),
        json!({"type": "number", "default": 1e30}),
        json!({"type": "number", "default": -0.5}),
        json!({"type": "null"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "string"}, "minItems": 2}),
        json!({"type": "array", "items": {"$ref": "#"}}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a b": {"type": "string"}, "c": {"const": 1}}, "required": ["a b", "c"]}),
        json!({"const": {"a": 1}}),
        json!({"const": 5}),
        json!({"enum": [{"a": 1}, "b"]}),
        json!({"enum": ["true", "no"]}),
        json!({"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]}),
        json!({"oneOf": [{"type": "null"}, {"type": "boolean"}]}),
        json!({"anyOf": []}),
        json!({"anyOf": [{"type": "null"}]}),
    ];
    for parameter in parameters {
        let parameters = one(&parameter);
        check(&PromptTool { name: "tool", description: "", parameters: &parameters });
    }
    for (name, parameters) in [("web_search", search()), ("save/file.v2", save()), ("nothing", json!({})), ("nothing", json!(null))] {
        check(&PromptTool { name, description: "", parameters: &parameters });
    }
}

#[test]
fn odd_names_of_parameters_are_read_back_or_left_out() {
    for name in
        ["params", "parameters", "name", "tool_call", "item", "a-b.c", "查询", "$filter", "a b", "1st", "x[y]", "a\nb", "id", "arguments"]
    {
        let parameters = json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        check(&PromptTool { name: "tool", description: "", parameters: &parameters });
    }
    let odd = json!({"properties": {"$filter": {"type": "string"}, "top": {"type": "integer"}}});
    let tool = [PromptTool { name: "tool", description: "", parameters: &odd }];
    let xml = Prompt::new(PromptFormat::Xml).instructions(&tool, super::Choice::Auto);
    assert!(!xml.contains("filter") && xml.contains("- top: integer"), "{xml}");
    assert!(Prompt::new(PromptFormat::Json).instructions(&tool, super::Choice::Auto).contains("- $filter: string"));
}

#[test]
fn a_schema_that_goes_round_costs_little() {
    let many: Vec<Value> = (0..200).map(|_| json!({"$ref": "#"})).collect();
    let names: Vec<String> = (0..200).map(|index| format!("p{index}")).collect();
    let properties: Value = names.iter().map(|name| (name.clone(), json!({"anyOf": many, "items": {"$ref": "#"}}))).collect();
    let round = json!({"type": "object", "properties": properties, "required": names, "allOf": many});
    let tool = PromptTool { name: "round", description: "", parameters: &round };
    for form in FORMS {
        let text = Prompt::new(form).instructions(&[tool], super::Choice::Auto);
        assert!(text.len() < 2_000_000, "{}", text.len());
    }
}

fn schemas() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\\]>< !a-z\\[\\n\"&;]{0,16}".prop_map(Value::from),
        Just(json!({"a": [1, "]]>"]})),
    ];
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "null", "array", "object"]);
    let leaf = (kind, value.clone(), value, any::<[bool; 4]>()).prop_map(|(kind, one, two, with)| {
        let members = [("type", json!(kind)), ("default", one.clone()), ("enum", json!([two, one])), ("examples", json!([two]))];
        members.into_iter().zip(with).filter(|(_, with)| *with).map(|((key, value), _)| (key.to_owned(), value)).collect()
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|list| json!({"anyOf": list})),
            prop::collection::btree_map("\\PC{1,6}", inner, 0..3)
                .prop_map(|members| json!({"type": "object", "required": members.keys().collect::<Vec<_>>(), "properties": members})),
        ]
    })
}

proptest! {
    #[test]
    fn any_example_is_read_back(parameter in schemas()) {
        let parameters = one(&parameter);
        check(&PromptTool { name: "tool", description: "", parameters: &parameters });
    }
}
