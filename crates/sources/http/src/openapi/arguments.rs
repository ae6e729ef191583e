//! The arguments of one tool: every parameter gets a name that templates can use and that is its own.

use serde_json::{Map, Value, json};

use super::names::{MAX_NAME, cut, lettered, snake};

/// Words that mean something else in a template.
const RESERVED: [&str; 16] =
    ["and", "else", "false", "False", "if", "in", "is", "loop", "none", "None", "not", "or", "self", "super", "true", "True"];

/// Where in the request an argument goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Body,
}

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Body => "body",
        }
    }
}

/// The arguments of one tool.
#[derive(Default)]
pub(super) struct Arguments {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Arguments {
    /// Adds an argument for something that the document calls `written`, and says which template stands for it.
    pub fn add(&mut self, written: &str, place: Place, schema: Value, required: bool) -> String {
        let name = self.free_name(&identifier(written, place), place);
        if required {
            self.required.push(json!(name));
        }
        self.properties.insert(name.clone(), schema);
        format!("{{{{ {name} }}}}")
    }

    pub fn has(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// The schemas of all arguments.
    pub fn schemas(&self) -> impl Iterator<Item = &Value> {
        self.properties.values()
    }

    /// The input schema of the tool.
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

    /// `id`, or `id_query` if there is an `id`, or `id_query_2`.
    fn free_name(&self, wanted: &str, place: Place) -> String {
        if !self.has(wanted) {
            return wanted.to_owned();
        }
        let ending = |number: usize| if number == 1 { format!("_{}", place.name()) } else { format!("_{}_{number}", place.name()) };
        let numbered = |number| format!("{}{}", cut(wanted, MAX_NAME - ending(number).len()), ending(number));
        // One of so many names is free, because there are fewer arguments.
        (1..=self.properties.len() + 1).map(numbered).find(|name| !self.has(name)).unwrap_or_default()
    }
}

/// The name of an argument: what the document says where a template can use it, else the words of it.
pub(super) fn identifier(written: &str, place: Place) -> String {
    let usable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let plain = written.len() <= MAX_NAME
        && written.bytes().all(usable)
        && written.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let name = if plain { written.to_owned() } else { snake(written) };
    let name = if name.is_empty() { place.name().to_owned() } else { name };
    let name = if name.starts_with('_') { name } else { lettered(name, place.name()) };
    let name = if RESERVED.contains(&name.as_str()) { format!("{name}_{}", place.name()) } else { name };
    cut(&name, MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_templates_can_use_them() {
        for (written, place, name) in [
            ("petId", Place::Path, "petId"),
            ("per_page", Place::Query, "per_page"),
            ("X-Rate", Place::Header, "x_rate"),
            ("filter[name]", Place::Query, "filter_name"),
            ("per-page", Place::Query, "per_page"),
            ("2fa", Place::Body, "body_2fa"),
            ("in", Place::Query, "in_query"),
            ("名前", Place::Body, "body"),
            ("$filter", Place::Query, "filter"),
            ("_links", Place::Body, "_links"),
        ] {
            assert_eq!(identifier(written, place), name, "{written}");
        }
        assert!(identifier(&"long".repeat(30), Place::Query).len() <= MAX_NAME);
    }

    #[test]
    fn the_same_name_in_two_places_is_two_arguments() {
        let mut arguments = Arguments::default();
        assert_eq!(arguments.add("id", Place::Path, json!({}), true), "{{ id }}");
        assert_eq!(arguments.add("id", Place::Query, json!({}), false), "{{ id_query }}");
        assert_eq!(arguments.add("ID-", Place::Query, json!({}), false), "{{ id_query_2 }}");
        assert_eq!(arguments.schema(Map::new())["required"], json!(["id"]));
    }
}
