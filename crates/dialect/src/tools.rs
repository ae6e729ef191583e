//! [`ToolTable`]: the tools that a model may call. Their names distinguish calls from data, and their schemas determine types.

use std::collections::HashMap;

use serde_json::Value;

use crate::work;

/// The names and schemas of the tools in a conversation. Calls to unknown tools are still parsed if the format is unambiguous.
#[derive(Debug, Clone, Default)]
pub struct ToolTable {
    schemas: HashMap<String, Value>,
    open: bool,
}

impl ToolTable {
    /// Creates a table from tool names and the JSON Schemas of their parameters.
    pub fn new<N: Into<String>>(tools: impl IntoIterator<Item = (N, Value)>) -> Self {
        Self { schemas: tools.into_iter().map(|(name, schema)| (name.into(), schema)).collect(), open: false }
    }

    /// Creates a table for tools that are not known: every name may be a tool, and no types are known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { schemas: HashMap::new(), open: true }
    }

    /// Creates a table from tools in JSON: `[{"name", "parameters"}]`, or each tool inside `{"type": "function", "function": …}`.
    ///
    /// # Errors
    /// Returns an error message if the JSON is not a list of tools, or if a tool has no name.
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

    /// Returns whether `name` may be a tool. Always true for [`ToolTable::unknown`].
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.open || self.schemas.contains_key(name)
    }

    /// Returns whether the table contains a tool with this name.
    pub(crate) fn lists(&self, name: &str) -> bool {
        work::count(name.len());
        self.schemas.contains_key(name)
    }

    /// Returns whether a text contains the name of a tool. Always true if the tools are unknown.
    pub(crate) fn are_named_in(&self, text: &str) -> bool {
        self.open || self.schemas.keys().any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some())
    }

    /// Returns whether a tool name starts with this text. Always true if the tools are unknown.
    pub(crate) fn has_prefix(&self, start: &str) -> bool {
        self.open || self.schemas.keys().any(|name| name.starts_with(start))
    }

    /// Returns the schema of a tool, or `None` if it is unknown or not an object.
    pub(crate) fn schema(&self, name: &str) -> Option<&Value> {
        self.schemas.get(name).filter(|schema| schema.is_object())
    }

    /// Returns the names of a tool's required parameters.
    pub(crate) fn required(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.schema(name).and_then(|schema| schema.get("required")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns the required parameter of a tool, or `None` if there is not exactly one.
    pub(crate) fn only_required(&self, name: &str) -> Option<&str> {
        let schema = self.schema(name)?;
        match schema.get("required")?.as_array()?.as_slice() {
            [Value::String(only)] => Some(only),
            _ => None,
        }
    }

    /// Splits a tool name that is directly followed by the name of one of the tool's parameters.
    pub(crate) fn split<'a>(&self, written: &'a str) -> Option<(&'a str, &'a str)> {
        let fits = |(name, schema): (&String, &Value)| {
            let key = written.strip_prefix(name.as_str())?.trim_start();
            schema.get("properties")?.get(key)?;
            Some((&written[..name.len()], key))
        };
        self.schemas.iter().filter_map(fits).max_by_key(|(name, _)| name.len())
    }

    /// Returns the tool name without a prefix or suffix that the model added, or `written` if no tool matches.
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
