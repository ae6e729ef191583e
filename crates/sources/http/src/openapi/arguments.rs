//! Collects the arguments of a tool. Every parameter gets a unique name that templates can use.

use serde_json::{Map, Value, json};

use super::names::{MAX_NAME, cut, lettered, snake};

/// Reserved words of the template language, which cannot be names of arguments.
const RESERVED: [&str; 16] =
    ["and", "else", "false", "False", "if", "in", "is", "loop", "none", "None", "not", "or", "self", "super", "true", "True"];

/// The part of the request that contains an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    Path,
    Query,
    Header,
    Body,
}

impl Location {
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Body => "body",
        }
    }
}

/// The arguments of a tool, with their schemas.
#[derive(Default)]
pub(super) struct Arguments {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Arguments {
    /// Adds an argument for the parameter that the document names `written`. Returns a template for the argument.
    pub fn add(&mut self, written: &str, location: Location, schema: Value, required: bool) -> String {
        let name = self.free_name(&identifier(written, location), location);
        if required {
            self.required.push(json!(name));
        }
        self.properties.insert(name.clone(), schema);
        format!("{{{{ {name} }}}}")
    }

    pub fn has(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// Returns the schemas of all arguments.
    pub fn schemas(&self) -> impl Iterator<Item = &Value> {
        self.properties.values()
    }

    /// Returns the input schema of the tool, with `definitions` as `$defs`.
    pub fn schema(self, definitions: Map<String, Value>) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties, "additionalProperties": false});
        if !self.required.is_empty() {
            schema["required"] = Value::Array(self.required);
        }
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions);
        }
        schema
    }

    /// Returns the first unused name of, for example, `id`, `id_query` and `id_query_2`.
    fn free_name(&self, wanted: &str, location: Location) -> String {
        if !self.has(wanted) {
            return wanted.to_owned();
        }
        let ending = |number: usize| if number == 1 { format!("_{}", location.name()) } else { format!("_{}_{number}", location.name()) };
        let numbered = |number| format!("{}{}", cut(wanted, MAX_NAME - ending(number).len()), ending(number));
        // There are more candidates than arguments, so one of them is unused.
        (1..=self.properties.len() + 1).map(numbered).find(|name| !self.has(name)).unwrap_or_default()
    }
}

/// Returns the name of an argument: the name in the document if templates can use it, otherwise the name in snake case.
pub(super) fn identifier(written: &str, location: Location) -> String {
    let usable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let plain = written.len() <= MAX_NAME
        && written.bytes().all(usable)
        && written.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let name = if plain { written.to_owned() } else { snake(written) };
    let name = if name.is_empty() { location.name().to_owned() } else { name };
    let name = if name.starts_with('_') { name } else { lettered(name, location.name()) };
    let name = if RESERVED.contains(&name.as_str()) { format!("{name}_{}", location.name()) } else { name };
    cut(&name, MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_templates_can_use_them() {
        for (written, location, name) in [
            ("petId", Location::Path, "petId"),
            ("per_page", Location::Query, "per_page"),
            ("X-Rate", Location::Header, "x_rate"),
            ("filter[name]", Location::Query, "filter_name"),
            ("per-page", Location::Query, "per_page"),
            ("2fa", Location::Body, "body_2fa"),
            ("in", Location::Query, "in_query"),
            ("名前", Location::Body, "body"),
            ("$filter", Location::Query, "filter"),
            ("_links", Location::Body, "_links"),
        ] {
            assert_eq!(identifier(written, location), name, "{written}");
        }
        assert!(identifier(&"long".repeat(30), Location::Query).len() <= MAX_NAME);
    }

    #[test]
    fn the_same_name_in_two_places_is_two_arguments() {
        let mut arguments = Arguments::default();
        assert_eq!(arguments.add("id", Location::Path, json!({}), true), "{{ id }}");
        assert_eq!(arguments.add("id", Location::Query, json!({}), false), "{{ id_query }}");
        assert_eq!(arguments.add("ID-", Location::Query, json!({}), false), "{{ id_query_2 }}");
        assert_eq!(arguments.schema(Map::new())["required"], json!(["id"]));
    }
}
