//! The tools a model may call: their names distinguish calls from data, and their schemas determine types.

use std::collections::HashMap;

use serde_json::Value;

use crate::work;

/// The tools of a conversation. Calls of unknown tools are still parsed if the format is unambiguous.
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

    /// An unknown list of tools: every name may be a tool, and no types are known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { schemas: HashMap::new(), open: true }
    }

    /// Tools as written for models: `[{"name", "parameters"}]`, or each inside `{"type": "function", "function": …}`.
    ///
    /// # Errors
    /// Names the first entry without a name.
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

    /// Returns whether this name can be a tool.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.open || self.schemas.contains_key(name)
    }

    pub(crate) fn lists(&self, name: &str) -> bool {
        work::count(name.len());
        self.schemas.contains_key(name)
    }

    /// Returns whether a text contains the name of a tool.
    pub(crate) fn are_named_in(&self, text: &str) -> bool {
        self.open || self.schemas.keys().any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some())
    }

    /// Returns whether a tool name starts with this text.
    pub(crate) fn has_prefix(&self, start: &str) -> bool {
        self.open || self.schemas.keys().any(|name| name.starts_with(start))
    }

    pub(crate) fn schema(&self, name: &str) -> Option<&Value> {
        self.schemas.get(name).filter(|schema| schema.is_object())
    }

    /// The required parameters.
    pub(crate) fn required(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.schema(name).and_then(|schema| schema.get("required")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The only required parameter, if there is exactly one and it takes a string.
    pub(crate) fn only_required(&self, name: &str) -> Option<&str> {
        let schema = self.schema(name)?;
        match schema.get("required")?.as_array()?.as_slice() {
            [Value::String(only)] => Some(only),
            _ => None,
        }
    }

    /// A tool name directly followed by one of its parameter names.
    pub(crate) fn split<'a>(&self, written: &'a str) -> Option<(&'a str, &'a str)> {
        let fits = |(name, schema): (&String, &Value)| {
            let key = written.strip_prefix(name.as_str())?.trim_start();
            schema.get("properties")?.get(key)?;
            Some((&written[..name.len()], key))
        };
        self.schemas.iter().filter_map(fits).max_by_key(|(name, _)| name.len())
    }

    /// The tool name that a model meant when it wrote this one with decoration.
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
