//! The type of a result, and the result of `tools/call`.

use serde_json::{Map, Value};

const FIELD: &str = "resultType";

/// The type of a result in the modern era. A result without a type is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultType<'a> {
    /// The request is finished.
    Complete,
    /// The client must provide input and repeat the request; see [`InputRequired`](crate::InputRequired).
    InputRequired,
    /// The request continues as a task.
    Task,
    /// A type that this crate does not know.
    Unknown(&'a str),
}

impl<'a> ResultType<'a> {
    /// Returns the type of a result.
    #[must_use]
    pub fn of(result: &'a Value) -> Self {
        match result.get(FIELD).and_then(Value::as_str) {
            None | Some("complete") => Self::Complete,
            Some("input_required") => Self::InputRequired,
            Some("task") => Self::Task,
            Some(other) => Self::Unknown(other),
        }
    }

    /// Sets the type of a result, and replaces an existing one.
    pub fn put(self, result: &mut Map<String, Value>) {
        let name = match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Task => "task",
            Self::Unknown(name) => name,
        };
        result.insert(FIELD.to_owned(), name.into());
    }

    /// Removes the type from a result.
    pub fn remove(result: &mut Map<String, Value>) {
        result.remove(FIELD);
    }
}

/// The result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The content blocks.
    pub content: Vec<Value>,
    /// The value of `structuredContent`; null if there is none.
    pub structured: Value,
    /// Whether the tool failed.
    pub is_error: bool,
    /// All other fields of the result.
    pub rest: Map<String, Value>,
}

impl ToolResult {
    /// Parses a result, without copying its parts.
    ///
    /// # Errors
    /// Returns what is wrong if the result is not an object, or its `content` is not a list.
    pub fn read(result: Value) -> Result<Self, &'static str> {
        let Value::Object(mut fields) = result else { return Err("is not an object") };
        let content = match fields.remove("content") {
            Some(Value::Array(blocks)) => blocks,
            None | Some(Value::Null) => Vec::new(),
            Some(_) => return Err("has a `content` that is not a list"),
        };
        let structured = fields.remove("structuredContent").unwrap_or_default();
        let is_error = fields.remove("isError").and_then(|is_error| is_error.as_bool()).unwrap_or_default();
        Ok(Self { content, structured, is_error, rest: fields })
    }

    /// Serialises the result as JSON.
    #[must_use]
    pub fn into_value(self) -> Value {
        let mut fields = Map::new();
        fields.insert("content".to_owned(), Value::Array(self.content));
        if !self.structured.is_null() {
            fields.insert("structuredContent".to_owned(), self.structured);
        }
        if self.is_error {
            fields.insert("isError".to_owned(), true.into());
        }
        fields.extend(self.rest);
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_result_comes_back_as_it_was_with_fields_that_are_not_known() {
        let result = json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"a": 1}, "isError": true, "_meta": {"b": 2}});
        let read = ToolResult::read(result.clone()).expect("a result");
        assert_eq!((read.is_error, &read.structured, read.rest.len()), (true, &json!({"a": 1}), 1));
        assert_eq!(read.into_value(), result);
        assert_eq!(ToolResult::read(json!({})), Ok(ToolResult::default()));
        assert!(ToolResult::read(json!([])).is_err() && ToolResult::read(json!({"content": "x"})).is_err());
    }

    #[test]
    fn a_result_without_a_type_is_complete() {
        for (result, wanted) in [
            (json!({}), ResultType::Complete),
            (json!({"resultType": "complete"}), ResultType::Complete),
            (json!({"resultType": "input_required"}), ResultType::InputRequired),
            (json!({"resultType": "dream"}), ResultType::Unknown("dream")),
        ] {
            assert_eq!(ResultType::of(&result), wanted, "{result}");
        }
    }
}
