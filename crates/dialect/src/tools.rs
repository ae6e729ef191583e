//! The tools a model may call: their names, which tell calls from data, and their schemas, which decide types.

use std::collections::HashMap;

use serde_json::Value;

use crate::work;

/// The tools of one conversation. Names that are not in it are read all the same where a format leaves no doubt.
#[derive(Debug, Clone, Default)]
pub struct ToolTable {
    schemas: HashMap<String, Value>,
    open: bool,
}

impl ToolTable {
    /// Tools by name, with the JSON Schema of their parameters.
    pub fn new<N: Into<String>>(tools: impl IntoIterator<Item = (N, Value)>) -> Self {
        Self { schemas: tools.into_iter().map(|(name, schema)| (name.into(), schema)).collect(), open: false }
    }

    /// No list is at hand: every name may be a tool, and nothing is known of types.
    #[must_use]
    pub fn unknown() -> Self {
        Self { schemas: HashMap::new(), open: true }
    }

    /// Tools as they are written for models: `[{"name", "parameters"}]`, or each inside `{"type": "function", "function": …}`.
    ///
    /// # Errors
    /// Says which entry has no name.
    pub fn from_json(tools: &Value) -> Result<Self, String> {
        let list = match tools {
            Value::Array(list) => list,
            Value::Object(map) => match map.get("tools") {
                Some(Value::Array(list)) => list,
                _ => return Err("tools must be an array, or an object with an array in `tools`".to_owned()),
            },
            _ => return Err("tools must be an array".to_owned()),
        };
        let mut schemas = HashMap::with_capacity(list.len());
        for (place, tool) in list.iter().enumerate() {
            let tool = tool.get("function").filter(|inner| inner.is_object()).unwrap_or(tool);
            let Some(name) = tool.get("name").and_then(Value::as_str) else {
                return Err(format!("tool {place} has no `name`"));
            };
            let schema = ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| tool.get(*key));
            schemas.insert(name.to_owned(), schema.cloned().unwrap_or(Value::Null));
        }
        Ok(Self { schemas, open: false })
    }

    /// Whether a call to this name can be meant.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.open || self.schemas.contains_key(name)
    }

    pub(crate) fn lists(&self, name: &str) -> bool {
        work::count(name.len());
        self.schemas.contains_key(name)
    }

    /// Whether a name could still become one of a tool.
    pub(crate) fn has_prefix(&self, start: &str) -> bool {
        self.open || self.schemas.keys().any(|name| name.starts_with(start))
    }

    pub(crate) fn schema(&self, name: &str) -> Option<&Value> {
        self.schemas.get(name).filter(|schema| schema.is_object())
    }

    /// The parameters that must be given.
    pub(crate) fn required(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.schema(name).and_then(|schema| schema.get("required")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The only required parameter that takes a string, where there is exactly one required parameter.
    pub(crate) fn only_required(&self, name: &str) -> Option<&str> {
        let schema = self.schema(name)?;
        match schema.get("required")?.as_array()?.as_slice() {
            [Value::String(only)] => Some(only),
            _ => None,
        }
    }

    /// A tool's name with one of its parameters' names right behind it.
    pub(crate) fn split<'a>(&self, written: &'a str) -> Option<(&'a str, &'a str)> {
        let fits = |(name, schema): (&String, &Value)| {
            let key = written.strip_prefix(name.as_str())?.trim_start();
            schema.get("properties")?.get(key)?;
            Some((&written[..name.len()], key))
        };
        self.schemas.iter().filter_map(fits).max_by_key(|(name, _)| name.len())
    }

    /// The name that a model meant when it wrote this one with the marks of its format around it.
    pub(crate) fn clean<'a>(&self, written: &'a str) -> &'a str {
        if self.lists(written) || self.schemas.is_empty() {
            return written;
        }
        let mut name = written;
        for prefix in ["functions.", "functions_", "function.", "tools.", "default_api."] {
            name = name.strip_prefix(prefix).unwrap_or(name);
            if self.lists(name) {
                return name;
            }
        }
        if let Some((stem, _)) = name.rsplit_once(':').filter(|(stem, _)| self.lists(stem)) {
            return stem;
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches([':', '_', '-', '.']);
        if self.lists(stem) { stem } else { written }
    }
}
