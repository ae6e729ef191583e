//! Merges `allOf` into one schema if the meaning stays the same. Models understand the merged schema better, and a body can be split into
//! arguments.

use serde_json::{Map, Value};

/// Keywords that depend on their sibling keywords, so that moving them could change their meaning.
const BOUND: [&str; 14] = [
    "$ref",
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "prefixItems",
    "items",
    "additionalItems",
    "contains",
    "maxContains",
    "minContains",
    "if",
    "then",
    "else",
];

/// Returns the schema with its `allOf` merged, or unchanged if merging is not possible.
pub(super) fn merged(mut schema: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(parts)) = schema.shift_remove("allOf") else { return schema };
    let all: Option<Vec<&Map<String, Value>>> = parts.iter().map(Value::as_object).collect();
    let merged = all.and_then(|all| {
        // If the only sibling is a description, even these keywords keep their meaning.
        let only_description = schema.keys().all(|keyword| keyword == "description");
        let may_be_bound = all.len() == 1 && only_description;
        let free = |part: &Map<String, Value>| !part.keys().any(|keyword| BOUND.contains(&keyword.as_str()));
        let all_free = free(&schema) && all.iter().all(|part| free(part));
        if !may_be_bound && !all_free {
            return None;
        }
        let mut whole = Map::new();
        all.into_iter().try_for_each(|part| add(&mut whole, part, false))?;
        add(&mut whole, &schema, true)?;
        Some(whole)
    });
    merged.unwrap_or_else(|| {
        schema.insert("allOf".into(), Value::Array(parts));
        schema
    })
}

/// Adds the keywords of a part to `whole`. Returns `None` if the two have different values for a keyword. If `outer` is set, the
/// description of the part wins.
fn add(whole: &mut Map<String, Value>, part: &Map<String, Value>, outer: bool) -> Option<()> {
    for (keyword, value) in part {
        match (whole.get_mut(keyword), keyword.as_str()) {
            (None, _) => {
                whole.insert(keyword.clone(), value.clone());
            }
            (Some(known), "description") => {
                if outer {
                    *known = value.clone();
                }
            }
            (Some(Value::Object(known)), "properties") => {
                for (name, property) in value.as_object()? {
                    if known.get(name).is_some_and(|known| known != property) {
                        return None;
                    }
                    known.insert(name.clone(), property.clone());
                }
            }
            (Some(Value::Array(known)), "required") => {
                for name in value.as_array()? {
                    if !known.contains(name) {
                        known.push(name.clone());
                    }
                }
            }
            (Some(known), _) if known == value => {}
            _ => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merge(value: &Value) -> Value {
        Value::Object(merged(value.as_object().cloned().unwrap_or_default()))
    }

    #[test]
    fn parts_become_one() {
        let whole = merge(&json!({"description": "outer", "allOf": [
            {"type": "object", "description": "inner", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["a", "b"]}]}));
        let expected = json!({"type": "object", "description": "outer",
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b"]});
        assert_eq!(whole, expected);
        assert_eq!(merge(&json!({"description": "d", "allOf": [{"$ref": "#/$defs/a"}]})), json!({"$ref": "#/$defs/a", "description": "d"}));
    }

    #[test]
    fn parts_that_disagree_or_are_bound_stay() {
        for schema in [
            json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "integer"}}}]}),
            json!({"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]}),
            json!({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {}}}]}),
            json!({"allOf": [true]}),
        ] {
            assert_eq!(merge(&schema), schema);
        }
    }
}
