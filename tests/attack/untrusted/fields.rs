//! Every place in a file where a text can stand, every way to write a variable or an address there, and which of both met.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::samples::Sample;

/// Variables that only folders name, with and without names that say secret.
pub const VARIABLES: [&str; 5] = ["HOUSE_KEY", "HUB_TOKEN", "PLAIN", "HOME_SERVER", "DB_PASSWORD"];

/// Ways to write a variable. Each stands in every position.
const REFERENCES: [&str; 4] = ["${NAME}", "${NAME:-x}", "the code is ${NAME}, or so", "$${NAME}"];

/// Ways to write an address that leads to the trap, or tries to. Each stands in every position that can be an address.
const ADDRESSES: [&str; 24] = [
    "http://127.0.0.1:PORT/v1",
    "HTTP://127.0.0.1:PORT/v1",
    "hTTp://localhost:PORT/v1",
    "  http://127.0.0.1:PORT/v1",
    "https://127.0.0.1:PORT/v1",
    "http://LOCALHOST:PORT/v1",
    "http://127.1:PORT/v1",
    "http://0:PORT/v1",
    "http://0x7f000001:PORT/v1",
    "http://2130706433:PORT/v1",
    "http://[::ffff:127.0.0.1]:PORT/v1",
    "http://user:pass@127.0.0.1:PORT/v1",
    "http://127.0.0.1.:PORT/v1",
    "http://１２７.0.0.1:PORT/v1",
    "http:\\\\127.0.0.1:PORT\\v1",
    "//127.0.0.1:PORT/v1",
    "127.0.0.1:PORT",
    "http://127.0.0.1:PORT/v1?key=${HUB_TOKEN}#m",
    "http://${HOME_SERVER:-127.0.0.1}:PORT/v1",
    "${HOME_SERVER:-http://127.0.0.1:PORT}/v1",
    "http://127.0.0.1:PORT/x/../y",
    "postgres://u:${DB_PASSWORD}@127.0.0.1:PORT/x",
    "sqlite:../../outside.db",
    "file:///etc/passwd",
];

/// Fields whose values are constrained, or decide how the rest is read. What is written there breaks the file or changes its meaning, so
/// that each of them stands alone in a file that is otherwise as its sample.
const ISOLATED: [&str; 40] = [
    "/name",
    "/permission",
    "/mode",
    "/stdin",
    "/format",
    "/type",
    "/method",
    "/body_format",
    "/timeout",
    "/delay",
    "/cache",
    "/ttl",
    "/items",
    "/on_result",
    "/openapi",
    "agent:/permissions/*",
    "set:/tools/-",
    "set:/tool_sets/-",
    "agent:/tool_sets/-",
    "agent:/tools/-",
    "agent:/subagents/-",
    "helve:/agent",
    "helve:/models/*/provider",
    "document:/paths/*/post/parameters/-/in",
    "/$ref",
    "/prefix",
    "/default",
    "/working_folder",
    "/result",
    "/mcp_api_key_header",
    "/api_url",
    "/token_url",
    "mcp:/url",
    "/include/-",
    "/enum/-",
    "/tags/-",
    "/env/-",
    "/username",
    "/header",
    "/servers/-/url",
];

/// Isolated fields that name something to fetch.
const ISOLATED_ADDRESSES: [&str; 6] = ["openapi:/openapi", "/$ref", "/api_url", "/token_url", "mcp:/url", "/servers/-/url"];

/// Objects that may have any field.
const OPEN_OBJECTS: [&str; 6] =
    ["helve:/permissions/-/when", "native:/query", "native:/body", "mcp:/tools/*/arguments", "document:", "/output"];

/// How often texts are written in different ways.
pub const SPELLINGS: usize = REFERENCES.len() + ADDRESSES.len();

/// A text with a number of its own.
pub fn spelling(index: usize, port: u16, turn: usize) -> String {
    let text = REFERENCES.iter().chain(&ADDRESSES).nth(index).unwrap_or_else(|| panic!("no spelling {index}"));
    text.replace("NAME", VARIABLES[turn % VARIABLES.len()]).replace("PORT", &port.to_string())
}

/// A place in a file, by the JSON pointer of a value or of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// The value that is there.
    Value(String),
    /// Two fields that Helve does not know, in an object: the value of one, and the name of the other.
    Unknown(String),
}

impl Position {
    /// All positions of a file.
    pub fn all(value: &Value) -> Vec<Self> {
        let mut positions = Vec::new();
        walk(value, &mut |pointer, value| match value {
            Value::Object(_) => positions.push(Self::Unknown(pointer.to_owned())),
            Value::Array(_) | Value::Null => {}
            _ => positions.push(Self::Value(pointer.to_owned())),
        });
        positions
    }

    /// Writes a text there.
    pub fn put(&self, value: &mut Value, text: &str) {
        let (Self::Value(pointer) | Self::Unknown(pointer)) = self;
        let target = value.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        match self {
            Self::Value(_) => *target = json!(text),
            Self::Unknown(_) => {
                target["x_unknown"] = json!(text);
                target[text] = json!("x");
            }
        }
    }

    /// Whether it stands alone in its file.
    pub fn is_isolated(&self, sample: &Sample) -> bool {
        let Self::Value(pointer) = self else {
            return !is_sealed(sample.kind, self.pointer()) && !OPEN_OBJECTS.iter().any(|pattern| self.is_at(sample.kind, pattern));
        };
        let is_text = sample.value.pointer(pointer).is_some_and(Value::is_string);
        !is_text && !is_sealed(sample.kind, pointer) || ISOLATED.iter().any(|pattern| self.is_at(sample.kind, pattern))
    }

    /// Whether all addresses are written there, besides variables.
    pub fn is_address(&self, sample: &Sample) -> bool {
        matches!(self, Self::Value(_))
            && (!self.is_isolated(sample) || ISOLATED_ADDRESSES.iter().any(|pattern| self.is_at(sample.kind, pattern)))
    }

    /// The same for all items of an array.
    pub fn pattern(&self) -> Self {
        let items = |pointer: &str| pointer.split('/').map(|part| if is_index(part) { "-" } else { part }).collect::<Vec<_>>().join("/");
        match self {
            Self::Value(pointer) => Self::Value(items(pointer)),
            Self::Unknown(pointer) => Self::Unknown(items(pointer)),
        }
    }

    fn pointer(&self) -> &str {
        let (Self::Value(pointer) | Self::Unknown(pointer)) = self;
        pointer
    }

    /// Whether it is meant by `kind:/a/*/b`, or by `*/b` for any kind.
    fn is_at(&self, kind: &str, pattern: &str) -> bool {
        match pattern.split_once(':') {
            Some((own, pattern)) => own == kind && matches(pattern, self.pointer()),
            None => self.pattern().pointer().ends_with(pattern),
        }
    }
}

/// Fields of `helve.yaml` that do not get through a closed gate: nothing there breaks the file.
fn is_sealed(kind: &str, pointer: &str) -> bool {
    let open = ["agent", "permissions", "limits"];
    kind == "helve" && !open.contains(&pointer.split('/').nth(1).unwrap_or_default())
}

fn is_index(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

fn walk(value: &Value, visit: &mut impl FnMut(&str, &Value)) {
    fn below(pointer: &str, value: &Value, visit: &mut impl FnMut(&str, &Value)) {
        visit(pointer, value);
        let escaped = |field: &str| field.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Object(fields) => fields.iter().for_each(|(field, value)| below(&format!("{pointer}/{}", escaped(field)), value, visit)),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| below(&format!("{pointer}/{index}"), value, visit)),
            _ => {}
        }
    }
    below("", value, visit);
}

/// Whether a pointer is one of a pattern: `*` is any field, `-` any index.
fn matches(pattern: &str, pointer: &str) -> bool {
    let (patterns, parts): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), pointer.split('/').collect());
    let fits = |(pattern, part): (&&str, &&str)| *pattern == "*" || pattern == part || *pattern == "-" && is_index(part);
    patterns.len() == parts.len() && patterns.iter().zip(&parts).all(fits)
}

/// Fields of a schema, as patterns. A field that can only be one text has it behind a `=`, so that each branch of a union counts.
pub fn fields_of(schema: &Value) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    collect(schema, "", &mut fields);
    fields
}

fn collect(schema: &Value, pointer: &str, fields: &mut BTreeSet<String>) {
    let branches = ["oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
    let branches: Vec<_> = branches.filter(|branch| branch["type"] != "null").collect();
    // A union of texts is an enumeration: which of them is written does not matter here.
    for branch in branches.iter().filter(|branch| branch["const"].is_null()) {
        collect(branch, pointer, fields);
    }
    match schema["const"].as_str() {
        Some(only) => fields.insert(format!("{pointer}={only}")),
        None => fields.insert(pointer.to_owned()),
    };
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        collect(schema, &format!("{pointer}/{field}"), fields);
    }
    for (part, key) in [("*", "additionalProperties"), ("-", "items")] {
        if schema[key].is_object() {
            collect(&schema[key], &format!("{pointer}/{part}"), fields);
        }
    }
}

/// The fields of a schema that no sample has a value for.
pub fn missing(fields: &BTreeSet<String>, samples: &[&Sample]) -> Vec<String> {
    let mut there = Vec::new();
    for sample in samples {
        walk(&sample.value, &mut |pointer, value| there.push((pointer.to_owned(), value.clone())));
    }
    let is_there = |field: &String| {
        let (pattern, only) = field.split_once('=').map_or((field.as_str(), None), |(pattern, only)| (pattern, Some(only)));
        there.iter().any(|(pointer, value)| matches(pattern, pointer) && only.is_none_or(|only| value == only))
    };
    fields.iter().filter(|field| !is_there(field)).cloned().collect()
}

/// How often each spelling stands in each position.
#[derive(Default)]
pub struct Coverage(BTreeMap<(&'static str, Position, usize), usize>);

impl Coverage {
    pub fn tick(&mut self, kind: &'static str, position: &Position, spelling: usize) {
        *self.0.entry((kind, position.pattern(), spelling)).or_default() += 1;
    }

    pub fn has(&self, kind: &'static str, position: &Position, spelling: usize) -> bool {
        self.0.contains_key(&(kind, position.pattern(), spelling))
    }

    /// The pairs that should be there and are not; and how many there are.
    pub fn gaps(&self, samples: &[Sample]) -> (Vec<String>, usize) {
        let mut gaps = Vec::new();
        for sample in samples {
            for position in Position::all(&sample.value) {
                let wanted = if position.is_address(sample) { SPELLINGS } else { REFERENCES.len() };
                let lacks = |spelling: &usize| !self.0.contains_key(&(sample.kind, position.pattern(), *spelling));
                gaps.extend(
                    (0..wanted).filter(lacks).map(|spelling| format!("{}: {position:?}: {}", sample.kind, self::spelling(spelling, 0, 0))),
                );
            }
        }
        (gaps, self.0.len())
    }
}

/// How many spellings an isolated position has.
pub fn isolated_spellings(position: &Position, sample: &Sample) -> usize {
    if position.is_address(sample) { SPELLINGS } else { REFERENCES.len() }
}
