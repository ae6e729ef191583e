//! Describes a JSON Schema: its type, members and alternatives. The work is limited, also for hostile schemas.

use serde_json::Value;

use crate::types::type_of;

/// Maximum number of references that are followed.
const MAX_STEPS: usize = 16;
/// Maximum number of alternatives (`anyOf`, `oneOf`) that are described.
const MAX_ALTERNATIVES: usize = 8;
/// Maximum nesting of type names, as in `array<array<integer>>`.
const MAX_DEPTH: usize = 3;

/// A subschema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'a> {
    root: &'a Value,
    /// The subschema as written, which may be a reference.
    written: &'a Value,
    /// The subschema after its reference was resolved.
    meant: &'a Value,
}

/// A parameter, or a member of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub name: &'a str,
    pub shape: Shape<'a>,
    pub required: bool,
}

impl<'a> Shape<'a> {
    pub fn new(root: &'a Value) -> Self {
        Self { root, written: root, meant: root }.at(root)
    }

    /// Returns the shape of another subschema of the same root, and resolves its reference.
    pub fn at(self, written: &'a Value) -> Self {
        let mut meant = written;
        for _ in 0..MAX_STEPS {
            let target = meant.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
            meant = match (target.and_then(|pointer| self.root.pointer(pointer)), meant.get("allOf").and_then(Value::as_array)) {
                (Some(next), _) => next,
                // `allOf` with a reference is a common way to add a description.
                (None, Some(all)) if all.len() == 1 && meant.get("properties").is_none() => &all[0],
                _ => break,
            };
        }
        Self { written, meant, ..self }
    }

    /// Returns the value of a keyword in the subschema itself, or in the target of its reference.
    pub fn get(self, key: &str) -> Option<&'a Value> {
        self.written.get(key).or_else(|| self.meant.get(key))
    }

    pub fn description(self) -> &'a str {
        self.get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the alternatives except null, or the subschema itself if there are no alternatives.
    pub fn alternatives(self) -> Vec<Self> {
        let listed = ["anyOf", "oneOf"].iter().find_map(|key| self.meant.get(*key)?.as_array());
        let is_null = |shape: &Self| shape.meant.get("type").and_then(Value::as_str) == Some("null");
        match listed {
            Some(list) => list.iter().take(MAX_ALTERNATIVES).map(|schema| self.at(schema)).filter(|shape| !is_null(shape)).collect(),
            None => vec![self],
        }
    }

    /// Returns the members of an object, in the order of the schema.
    pub fn members(self) -> Vec<Member<'a>> {
        let parts = self.meant.get("allOf").and_then(Value::as_array).into_iter().flatten().map(|part| self.at(part).meant);
        let parts: Vec<&'a Value> = std::iter::once(self.meant).chain(parts).collect();
        let required: Vec<&str> =
            parts.iter().filter_map(|part| part.get("required")?.as_array()).flatten().filter_map(Value::as_str).collect();
        let mut members: Vec<Member<'a>> = Vec::new();
        for (name, schema) in parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten() {
            if parts.len() == 1 || members.iter().all(|member| member.name != name) {
                members.push(Member { name, shape: self.at(schema), required: required.contains(&name.as_str()) });
            }
        }
        members
    }

    pub fn items(self) -> Option<Self> {
        self.meant.get("items").filter(|items| items.is_object()).map(|items| self.at(items))
    }

    /// Returns the enum values, if there are any.
    pub fn choices(self) -> Option<&'a [Value]> {
        self.get("enum").and_then(Value::as_array).map(Vec::as_slice)
    }

    /// Returns the names of the JSON types that the schema allows. Ignores unknown names, because the schema is untrusted.
    pub fn types(self) -> Vec<&'static str> {
        let mut types = Vec::new();
        let named = match self.meant.get("type") {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ => Vec::new(),
        };
        named.into_iter().filter_map(known).for_each(|name| add(&mut types, name));
        if types.is_empty() {
            let values = self.choices().into_iter().flatten().chain(self.get("const"));
            values.map(type_of).for_each(|name| add(&mut types, name));
        }
        if types.is_empty() && !self.members().is_empty() {
            types.push("object");
        }
        if types.is_empty() && self.items().is_some() {
            types.push("array");
        }
        if self.meant.get("nullable") == Some(&Value::Bool(true)) {
            add(&mut types, "null");
        }
        types
    }

    /// Returns the type in a notation that does not depend on the language: `string`, `array<integer>`, `string | null`, …
    pub fn kind(self) -> String {
        self.kind_within(MAX_DEPTH)
    }

    fn kind_within(self, depth: usize) -> String {
        let mut names: Vec<String> = Vec::new();
        for name in self.types() {
            names.push(match (name, self.items(), self.meant.get("additionalProperties")) {
                ("array", Some(items), _) if depth > 0 => format!("array<{}>", items.kind_within(depth - 1)),
                ("object", _, Some(values @ Value::Object(_))) if depth > 0 && self.members().is_empty() => {
                    format!("map<string, {}>", self.at(values).kind_within(depth - 1))
                }
                _ => name.to_owned(),
            });
        }
        if names.is_empty() && depth > 0 {
            let listed = ["anyOf", "oneOf"].iter().find_map(|key| self.meant.get(*key)?.as_array());
            for alternative in listed.into_iter().flatten().take(MAX_ALTERNATIVES) {
                let name = self.at(alternative).kind_within(depth - 1);
                for name in name.split(" | ").map(str::to_owned) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
        if names.is_empty() { "any".to_owned() } else { names.join(" | ") }
    }
}

fn add(types: &mut Vec<&'static str>, name: &'static str) {
    if !types.contains(&name) {
        types.push(name);
    }
}

fn known(name: &str) -> Option<&'static str> {
    ["string", "integer", "number", "boolean", "array", "object", "null"].into_iter().find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_have_names() {
        for (schema, kind) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}), "array<array<integer>>"),
            (json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}), "string | integer | null"),
            (json!({"enum": ["a", 1]}), "string | integer"),
            (json!({"const": true}), "boolean"),
            (json!({"type": "object", "additionalProperties": {"type": "number"}}), "map<string, number>"),
            (json!({"properties": {"a": {}}}), "object"),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}), "boolean"),
            (json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "boolean"}}}), "boolean"),
            (json!({"type": "integer\n## evil"}), "any"),
            (json!({"type": "array", "items": {"$ref": "#"}}), "array<array<array<array>>>"),
            (json!({"$ref": "#"}), "any"),
            (json!(null), "any"),
        ] {
            assert_eq!(Shape::new(&schema).kind(), kind, "{schema}");
        }
    }

    #[test]
    fn members_of_all_parts_are_found_once() {
        let schema = json!({
            "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "integer"}}, "required": ["a"]}],
            "$defs": {"base": {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}},
        });
        let members: Vec<_> = Shape::new(&schema).members().iter().map(|m| (m.name, m.shape.kind(), m.required)).collect();
        assert_eq!(members, [("a", "string".to_owned(), true), ("b", "string".to_owned(), false)]);
    }
}
