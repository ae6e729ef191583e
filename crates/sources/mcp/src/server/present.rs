//! Converts results to the form of an era: adds or removes the fields that only one era has.

use helve_mcp_wire::{CODES, META, Meta, ResultType, RpcError};
use serde_json::{Map, Value, json};

use super::ServerInfo;

/// The methods whose results have cache hints in the modern era.
const CACHED: [&str; 6] = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/// Returns the value of `serverInfo`.
pub(super) fn server_info(about: &ServerInfo) -> Value {
    json!({"name": about.name, "version": about.version})
}

/// Converts a result for a modern client.
pub(super) fn modern(method: &str, result: Value, about: &ServerInfo) -> Result<Value, RpcError> {
    let is_complete = ResultType::of(&result) == ResultType::Complete;
    let mut fields = object(result)?;
    if is_complete {
        ResultType::Complete.put(&mut fields);
    }
    if is_complete && CACHED.contains(&method) {
        if fields.get("ttlMs").and_then(Value::as_u64).is_none() {
            fields.insert("ttlMs".to_owned(), 0.into());
        }
        if !matches!(fields.get("cacheScope").and_then(Value::as_str), Some("public" | "private")) {
            fields.insert("cacheScope".to_owned(), "private".into());
        }
    }
    if method == "tools/list" {
        tools(&mut fields).for_each(fit_input);
    }
    Meta::change(&mut fields, |meta| {
        meta.entry(META.server).or_insert_with(|| server_info(about));
    });
    Ok(Value::Object(fields))
}

/// Converts a result for a legacy client.
pub(super) fn legacy(method: &str, result: Value) -> Result<Value, RpcError> {
    if ResultType::of(&result) != ResultType::Complete {
        return Err(RpcError::new(CODES.internal, "The result asks for input in a way that clients of this version do not support"));
    }
    let mut fields = object(result)?;
    ResultType::remove(&mut fields);
    if CACHED.contains(&method) {
        fields.remove("ttlMs");
        fields.remove("cacheScope");
    }
    Meta::remove(&mut fields, &[META.server]);
    match method {
        "tools/list" => {
            tools(&mut fields).for_each(fit_tool);
        }
        "tools/call" if fields.get("structuredContent").is_some_and(|content| !content.is_object()) => {
            fields.remove("structuredContent");
        }
        _ => {}
    }
    Ok(Value::Object(fields))
}

fn tools(fields: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    fields.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Ensures that the input schema of a tool states the type `object`, which both eras require.
fn fit_input(tool: &mut Map<String, Value>) {
    let input = tool.entry("inputSchema").or_insert_with(|| json!({}));
    if let Value::Object(fields) = input {
        fields.entry("type").or_insert_with(|| "object".into());
    }
    if input.get("type").is_none_or(|kind| kind != "object") {
        *input = json!({"type": "object"});
    }
}

/// Adapts the schemas of a tool to the legacy era, which allows only schemas of objects whose property schemas are objects.
fn fit_tool(tool: &mut Map<String, Value>) {
    fit_input(tool);
    if tool.get_mut("inputSchema").is_some_and(|schema| !fit_schema(schema)) {
        tool.insert("inputSchema".to_owned(), json!({"type": "object"}));
    }
    if tool.get_mut("outputSchema").is_some_and(|schema| !fit_schema(schema)) {
        tool.remove("outputSchema");
    }
}

/// Adapts a schema to the legacy era. Returns whether this was possible.
fn fit_schema(schema: &mut Value) -> bool {
    let Some(fields) = schema.as_object_mut() else { return false };
    if fields.get("type").is_none_or(|kind| kind != "object") {
        return false;
    }
    let Some(properties) = fields.get_mut("properties") else { return true };
    let Some(properties) = properties.as_object_mut() else { return false };
    for property in properties.values_mut() {
        match property {
            Value::Bool(true) => *property = json!({}),
            Value::Bool(false) => *property = json!({"not": {}}),
            _ => {}
        }
    }
    properties.values().all(Value::is_object)
}

fn object(result: Value) -> Result<Map<String, Value>, RpcError> {
    match result {
        Value::Object(fields) => Ok(fields),
        _ => Err(RpcError::new(CODES.internal, "The result is not an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> ServerInfo {
        ServerInfo { name: "x".to_owned(), version: "1".to_owned(), instructions: None }
    }

    #[test]
    fn the_newer_era_gets_what_it_wants_and_keeps_what_was_said() {
        let meta = json!({META.server: {"name": "x", "version": "1"}});
        let list = modern("tools/list", json!({"tools": []}), &about());
        assert_eq!(list, Ok(json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": meta})));
        let call = modern("tools/call", json!({"content": [], "_meta": {"a": 1}}), &about()).unwrap();
        assert_eq!(call["_meta"]["a"], 1);
        assert_eq!((call.get("ttlMs"), &call["resultType"]), (None, &json!("complete")));
        let said = json!({"resultType": "complete", "contents": [], "ttlMs": 5, "cacheScope": "public", "_meta": {META.server: {"name": "other", "version": "2"}}});
        assert_eq!(modern("resources/read", said.clone(), &about()), Ok(said));
        let wrong = modern("resources/list", json!({"ttlMs": -4, "cacheScope": "mine"}), &about()).unwrap();
        assert_eq!((&wrong["ttlMs"], &wrong["cacheScope"]), (&json!(0), &json!("private")));
        let question = modern("resources/read", json!({"resultType": "input_required", "requestState": "s"}), &about()).unwrap();
        assert_eq!((question.get("ttlMs"), &question["requestState"]), (None, &json!("s")));
        assert!(modern("tools/call", json!([]), &about()).is_err());
        let listed = modern(
            "tools/list",
            json!({"tools": [{"name": "a", "inputSchema": {"properties": {"x": true}}}, {"name": "b", "inputSchema": true}]}),
            &about(),
        )
        .unwrap();
        assert_eq!(listed["tools"][0]["inputSchema"], json!({"properties": {"x": true}, "type": "object"}));
        assert_eq!(listed["tools"][1]["inputSchema"], json!({"type": "object"}));
    }

    #[test]
    fn the_older_era_gets_nothing_that_it_does_not_know() {
        let result = json!({"resources": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": {META.server: {}}});
        assert_eq!(legacy("resources/list", result), Ok(json!({"resources": []})));
        assert_eq!(
            legacy("tools/call", json!({"content": [], "ttlMs": 3, "_meta": {"a": 1}})),
            Ok(json!({"content": [], "ttlMs": 3, "_meta": {"a": 1}}))
        );
        assert_eq!(legacy("tools/call", json!({"content": [], "structuredContent": [1]})), Ok(json!({"content": []})));
        assert!(legacy("tools/call", json!({"resultType": "input_required"})).is_err());
    }

    #[test]
    fn tools_fit_the_older_schema() {
        let tools = json!({"tools": [
            {"name": "a", "inputSchema": true, "outputSchema": {"type": "array"}},
            {"name": "b"},
            {"name": "c", "inputSchema": {"properties": {"x": true, "y": false, "z": {"type": "string"}}}, "outputSchema": {"type": "object"}},
            {"name": "d", "inputSchema": {"type": "object", "properties": []}, "outputSchema": {"type": "object", "properties": {"x": 3}}},
            {"name": "e", "inputSchema": {"type": "object"}, "outputSchema": {"anyOf": []}},
        ]});
        let object = json!({"type": "object"});
        assert_eq!(
            legacy("tools/list", tools),
            Ok(json!({"tools": [
                {"name": "a", "inputSchema": object},
                {"name": "b", "inputSchema": object},
                {"name": "c", "inputSchema": {"properties": {"x": {}, "y": {"not": {}}, "z": {"type": "string"}}, "type": "object"}, "outputSchema": object},
                {"name": "d", "inputSchema": object},
                {"name": "e", "inputSchema": object},
            ]}))
        );
    }
}
