//! Converts a parsed object into a call: finds the keys with the tool name and the arguments.

use serde_json::{Map, Value};

use crate::event::Mode;
use crate::fault::{Fault, FaultKind};
use crate::format::Keys;
use crate::json::{self, Members, Syntax};
use crate::repair::{Repair, Repairs};
use crate::tools::ToolTable;
use crate::types::Types;

/// Keys for the tool name that lenient parsing accepts in addition to the format's key.
const NAMES: [&str; 5] = ["name", "tool_name", "function_name", "tool", "function"];
/// Keys for the arguments that lenient parsing accepts in addition to the format's key.
const ARGUMENTS: [&str; 8] = ["arguments", "parameters", "args", "params", "input", "tool_input", "kwargs", "action_input"];
/// Keys for the call id that are accepted in addition to the format's key.
const IDS: [&str; 3] = ["id", "tool_call_id", "call_id"];

/// A call without its position in the message.
#[derive(Debug)]
pub(crate) struct Parts {
    pub name: String,
    pub id: Option<String>,
    pub arguments: Map<String, Value>,
    pub repairs: Repairs,
    /// Whether the object has keys that calls do not have, so that without a marker it may be other data.
    pub extra: bool,
}

/// Returns whether an object that starts with this key can be a call.
pub(crate) fn may_begin(key: &str, tools: &ToolTable) -> bool {
    NAMES.contains(&key) || ARGUMENTS.contains(&key) || IDS.contains(&key) || matches!(key, "type" | "tool_calls") || tools.lists(key)
}

/// Converts an object into a call. `keys` are the keys of all formats that the text may be in.
pub(crate) fn from_value(value: Value, keys: &[&Keys], mode: Mode, tools: &ToolTable, mut repairs: Repairs) -> Result<Parts, Fault> {
    let Value::Object(mut map) = value else {
        return Err(Fault::new(FaultKind::NotAnObject, "a call must be an object with the tool's name and its arguments"));
    };
    let mut id = keys.iter().map(|keys| keys.id).chain(IDS).find_map(|key| text(&mut map, key));
    if let Some(Value::Object(inner)) = map.get_mut("function") {
        let mut inner = std::mem::take(inner);
        id = id.or_else(|| text(&mut inner, "id"));
        if !keys.iter().any(|keys| keys.wrapped) {
            if !mode.is_lenient() {
                return Err(Fault::syntax("the call is nested in a `function` object; write its name and arguments directly"));
            }
            repairs.add(Repair::FunctionWrapper);
        }
        map = inner;
    }
    let (name, arguments) = split(&mut map, keys, mode, tools, &mut repairs)?;
    let strings = keys.iter().any(|keys| keys.string_arguments);
    let arguments = match arguments {
        Some(Value::String(text)) if strings => string_arguments(&text, mode, &mut repairs)?,
        Some(value) => self::arguments(value, &name, mode, &mut repairs)?,
        None if mode.is_lenient() => {
            repairs.add(Repair::MissingArguments);
            Map::new()
        }
        None => return Err(Fault::syntax(format!("the call to {name} has no `{}`", keys.first().map_or("arguments", |k| k.arguments)))),
    };
    let known = |key: &String| {
        IDS.contains(&key.as_str())
            || matches!(key.as_str(), "type" | "index")
            || keys.iter().any(|keys| keys.id == key || keys.name == key)
    };
    let extra = map.keys().any(|key| !known(key));
    finish(&name, id, arguments, mode, tools, repairs).map(|parts| Parts { extra, ..parts })
}

/// Converts the members of an object into a call. Fast for the common case of a name and arguments under the format's own keys.
pub(crate) fn from_members(members: Members, keys: &[&Keys], mode: Mode, tools: &ToolTable) -> Result<Parts, Fault> {
    let own = keys.first().filter(|keys| !keys.by_key && !keys.wrapped);
    let usual = own.is_some_and(|keys| {
        let known = |(key, value): &(String, Value)| {
            (key == keys.name && value.is_string()) || (key == keys.arguments && value.is_object()) || (key == keys.id && value.is_string())
        };
        let has = |wanted: &str| members.iter().any(|(key, _)| key == wanted);
        members.iter().all(known) && has(keys.name) && has(keys.arguments)
    });
    let (Some(keys), true) = (own, usual) else {
        return from_value(Value::Object(members.into_iter().collect()), keys, mode, tools, Repairs::default());
    };
    let (mut name, mut arguments, mut id) = (String::new(), Map::new(), None);
    for (key, value) in members {
        match value {
            Value::Object(members) => arguments = members,
            Value::String(text) if key == keys.name => name = text,
            Value::String(text) => id = Some(text),
            _ => {}
        }
    }
    finish(&name, id, arguments, mode, tools, Repairs::default())
}

/// Returns the arguments as an object. Lenient parsing also accepts a string that contains JSON, and null.
pub(crate) fn arguments(value: Value, name: &str, mode: Mode, repairs: &mut Repairs) -> Result<Map<String, Value>, Fault> {
    match value {
        Value::Object(arguments) => Ok(arguments),
        Value::String(text) if mode.is_lenient() => {
            repairs.add(Repair::StringArguments);
            string_arguments(&text, mode, repairs)
        }
        Value::Null if mode.is_lenient() => {
            repairs.add(Repair::MissingArguments);
            Ok(Map::new())
        }
        other => Err(not_an_object(name, &other)),
    }
}

/// Creates a call: cleans the tool name and coerces the arguments to the tool's schema.
pub(crate) fn finish(
    name: &str,
    id: Option<String>,
    mut arguments: Map<String, Value>,
    mode: Mode,
    tools: &ToolTable,
    mut repairs: Repairs,
) -> Result<Parts, Fault> {
    let name = clean(name, mode, tools, &mut repairs)?;
    Types::new(tools.schema(&name), mode).fit(&mut arguments, &mut repairs);
    Ok(Parts { name, id, arguments, repairs, extra: false })
}

/// Returns the tool name without prefixes and suffixes that models add. Fails if the name is empty or too long.
pub(crate) fn clean(written: &str, mode: Mode, tools: &ToolTable, repairs: &mut Repairs) -> Result<String, Fault> {
    let name = written.trim();
    if name.is_empty() {
        return Err(no_name());
    }
    if name.len() > 256 {
        return Err(Fault::new(FaultKind::NoName, "the tool's name is longer than 256 bytes"));
    }
    let cleaned = if mode.is_lenient() { tools.clean(name) } else { name };
    if cleaned != name {
        repairs.add(Repair::OddName);
    }
    Ok(cleaned.to_owned())
}

pub(crate) fn no_name() -> Fault {
    Fault::new(FaultKind::NoName, "the call does not name a tool; add the tool's name")
}

pub(crate) fn not_an_object(name: &str, value: &Value) -> Fault {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Fault::new(FaultKind::NotAnObject, format!("the arguments of {name} are {found}; they must be an object: {{\"parameter\": value}}"))
}

/// Removes the tool name and the arguments from an object and returns them.
fn split(
    map: &mut Map<String, Value>,
    keys: &[&Keys],
    mode: Mode,
    tools: &ToolTable,
    repairs: &mut Repairs,
) -> Result<(String, Option<Value>), Fault> {
    if (keys.iter().any(|keys| keys.by_key) || (mode.is_lenient() && map.len() == 1 && map.keys().all(|key| tools.lists(key))))
        && let (1, Some(name)) = (map.len(), map.keys().next().cloned())
    {
        if !keys.iter().any(|keys| keys.by_key) {
            repairs.add(Repair::OtherKey);
        }
        return Ok((name.clone(), map.remove(&name)));
    }
    for keys in keys {
        if matches!(map.get(keys.name), Some(Value::String(_))) && map.contains_key(keys.arguments) {
            let name = text(map, keys.name).ok_or_else(no_name)?;
            return Ok((name, map.remove(keys.arguments)));
        }
    }
    let own = keys.iter().find_map(|keys| text(map, keys.name));
    if !mode.is_lenient() {
        return own.map(|name| (name, None)).ok_or_else(no_name);
    }
    let other = own.is_none();
    let name = own.or_else(|| NAMES.iter().find_map(|key| text(map, key))).ok_or_else(no_name)?;
    let found = keys.iter().find_map(|keys| map.remove(keys.arguments));
    if let Some(arguments) = found {
        if other {
            repairs.add(Repair::OtherKey);
        }
        return Ok((name, Some(arguments)));
    }
    let arguments = ARGUMENTS.iter().find_map(|key| map.remove(*key));
    if arguments.is_some() || other {
        repairs.add(Repair::OtherKey);
    }
    Ok((name, arguments))
}

fn string_arguments(text: &str, mode: Mode, repairs: &mut Repairs) -> Result<Map<String, Value>, Fault> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let reading = json::read(text, Syntax::Json, mode, 0)?;
    repairs.join(reading.repairs);
    match reading.value {
        Value::Object(map) => Ok(map),
        other => Err(not_an_object("the call", &other)),
    }
}

fn text(map: &mut Map<String, Value>, key: &str) -> Option<String> {
    match map.get_mut(key) {
        Some(Value::String(text)) => Some(std::mem::take(text)),
        Some(Value::Number(number)) if IDS.contains(&key) => Some(number.to_string()),
        _ => None,
    }
}
