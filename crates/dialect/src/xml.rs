//! Parses the subset of XML that calls use: attributes, entities, CDATA and nested elements.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::fault::{Fault, FaultKind};
use crate::format::Tags;
use crate::json::{self, MAX_DEPTH, MAX_VALUES};
use crate::repair::{Repair, Repairs};
use crate::types::Types;
use crate::work::{self, seen};

pub(crate) const CDATA: &str = "<![CDATA[";
pub(crate) const CDATA_END: &str = "]]>";

/// Returns the value of an attribute. `inside` is the text of the tag after its name.
pub(crate) fn attribute(inside: &str, name: &str, repairs: &mut Repairs) -> Option<String> {
    work::count(inside.len());
    let mut rest = inside;
    loop {
        rest = rest.trim_start();
        let end = rest.find(|c: char| c == '=' || c.is_whitespace())?;
        let (key, after) = rest.split_at(end);
        let Some(after) = after.trim_start().strip_prefix('=') else {
            rest = after;
            continue;
        };
        let after = after.trim_start();
        let (value, next, bare) = if let Some(quote @ ('"' | '\'')) = after.chars().next() {
            let inner = &after[1..];
            let close = inner.find(quote)?;
            (&inner[..close], &inner[close + 1..], false)
        } else {
            let close = after.find(char::is_whitespace).unwrap_or(after.len());
            (after[..close].trim_end_matches('/'), &after[close..], true)
        };
        if key == name {
            if bare {
                repairs.add(Repair::UnquotedAttribute);
            }
            return Some(unescape(value, &mut Repairs::default()));
        }
        rest = next;
    }
}

/// Decodes entities such as `&lt;`. Keeps an `&` that does not start an entity, and records the repair.
pub(crate) fn unescape(text: &str, repairs: &mut Repairs) -> String {
    work::count(text.len());
    let Some(first) = text.find('&') else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let window = &rest.as_bytes()[..rest.len().min(12)];
        let entity = memchr::memchr(b';', window).map(|end| &rest[1..end]);
        if let Some((entity, character)) = entity.and_then(|entity| Some((entity, resolve(entity)?))) {
            out.push(character);
            rest = &rest[entity.len() + 2..];
        } else {
            repairs.add(Repair::BareAmpersand);
            out.push('&');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

fn resolve(entity: &str) -> Option<char> {
    Some(match entity {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

/// Returns the text of a value: CDATA verbatim without the white space around it, and other text with entities decoded.
pub(crate) fn plain(raw: &str, tags: &Tags, repairs: &mut Repairs) -> String {
    if !(tags.cdata && seen(raw, raw.find(CDATA)).is_some()) {
        return if tags.entities { unescape(raw, repairs) } else { raw.to_owned() };
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(start) = seen(rest, rest.find(CDATA)) {
        outside(&rest[..start], tags, &mut out, repairs);
        let inner = &rest[start + CDATA.len()..];
        if let Some(end) = seen(inner, inner.find(CDATA_END)) {
            out.push_str(&inner[..end]);
            rest = &inner[end + CDATA_END.len()..];
        } else {
            repairs.add(Repair::MissingCdataEnd);
            out.push_str(inner);
            rest = "";
        }
    }
    outside(rest, tags, &mut out, repairs);
    out
}

fn outside(text: &str, tags: &Tags, out: &mut String, repairs: &mut Repairs) {
    if !text.trim().is_empty() {
        let text = text.trim();
        if tags.entities { out.push_str(&unescape(text, repairs)) } else { out.push_str(text) }
    }
}

/// Parses a value that may contain nested elements.
pub(crate) fn value<'a>(
    raw: &str,
    tags: &Tags,
    types: &Types<'a>,
    schema: Option<&'a Value>,
    repairs: &mut Repairs,
) -> Result<Value, Fault> {
    if !types.keeps_text(schema)
        && raw.trim_start().starts_with(tags.open)
        && let Some(node) = elements(raw, tags, repairs)?
    {
        return Ok(convert(node, types, schema, repairs));
    }
    Ok(types.of_text(&plain(raw, tags, repairs), schema, repairs))
}

/// An element: its text, or its child elements with their names.
#[derive(Debug)]
struct Node {
    text: String,
    /// Whether the text consists of white space.
    blank: bool,
    children: Vec<(String, Node)>,
}

impl Default for Node {
    fn default() -> Self {
        Self { text: String::new(), blank: true, children: Vec::new() }
    }
}

impl Node {
    fn push(&mut self, text: &str) {
        self.blank &= text.trim_start().is_empty();
        self.text.push_str(text);
    }
}

/// Parses a text that consists of elements, in one pass. Returns `None` if it contains other text or is not well-formed.
fn elements(raw: &str, tags: &Tags, repairs: &mut Repairs) -> Result<Option<Node>, Fault> {
    let mut stack: Vec<(String, Node)> = vec![(String::new(), Node::default())];
    let (mut rest, mut count) = (raw, 0);
    while !rest.is_empty() {
        if tags.cdata && rest.starts_with(CDATA) {
            let Some(end) = seen(rest, rest.find(CDATA_END)) else { return Ok(None) };
            let Some((_, node)) = stack.last_mut() else { return Ok(None) };
            if node.blank {
                node.text.clear();
            }
            node.push(&rest[CDATA.len()..end]);
            rest = &rest[end + CDATA_END.len()..];
        } else if let Some(after) = rest.strip_prefix(tags.close) {
            let Some(end) = seen(after, after.find(tags.end)) else { return Ok(None) };
            let Some((name, node)) = stack.pop() else { return Ok(None) };
            let Some((_, parent)) = stack.last_mut() else { return Ok(None) };
            if after[..end].trim_end() != name {
                return Ok(None);
            }
            parent.children.push((name, node));
            rest = &after[end + tags.end.len()..];
        } else if let Some(after) = rest.strip_prefix(tags.open).filter(|after| starts_name(after)) {
            let Some(end) = seen(after, after.find(tags.end)) else { return Ok(None) };
            let inside = &after[..end];
            let empty = inside.ends_with('/');
            let name = inside.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or(inside).to_owned();
            rest = &after[end + tags.end.len()..];
            count += 1;
            if count > MAX_VALUES {
                return Err(json::too_large());
            }
            if stack.len() > MAX_DEPTH {
                return Err(Fault::new(FaultKind::TooDeep, format!("elements are nested more than {MAX_DEPTH} levels deep")));
            }
            if empty {
                if let Some((_, parent)) = stack.last_mut() {
                    parent.children.push((name, Node::default()));
                }
            } else {
                stack.push((name, Node::default()));
            }
        } else {
            let step = rest.char_indices().nth(1).map_or(rest.len(), |(next, _)| next);
            let first = tags.open.chars().next().unwrap_or('<');
            let end = seen(&rest[step..], rest[step..].find(first)).map_or(rest.len(), |found| found + step);
            let Some((_, node)) = stack.last_mut() else { return Ok(None) };
            let text = &rest[..end];
            if tags.entities {
                node.push(&unescape(text, repairs));
            } else {
                node.push(text);
            }
            rest = &rest[end..];
        }
    }
    let mixed = |node: &Node| !node.children.is_empty() && !node.blank;
    match stack.pop() {
        Some((_, root)) if stack.is_empty() && !mixed(&root) && !root.children.is_empty() => Ok(Some(root)),
        _ => Ok(None),
    }
}

pub(crate) fn starts_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn convert<'a>(node: Node, types: &Types<'a>, schema: Option<&'a Value>, repairs: &mut Repairs) -> Value {
    if node.children.is_empty() {
        // White space around CDATA was removed before; in plain text it belongs to the value.
        return types.of_text(&node.text, schema, repairs);
    }
    let all_items = node.children.iter().all(|(name, _)| name == "item");
    if all_items || (types.wants_array(schema) && same_names(&node)) {
        let items = types.items(schema);
        return Value::Array(node.children.into_iter().map(|(_, child)| convert(child, types, items, repairs)).collect());
    }
    let mut map = Map::new();
    for (name, mut same) in group(node.children) {
        let schema = types.member(schema, &name);
        let value = match (same.len(), same.pop()) {
            (1, Some(only)) => convert(only, types, schema, repairs),
            (_, last) => {
                let items = types.items(schema);
                Value::Array(same.into_iter().chain(last).map(|child| convert(child, types, items, repairs)).collect())
            }
        };
        map.insert(name, value);
    }
    Value::Object(map)
}

fn same_names(node: &Node) -> bool {
    node.children.windows(2).all(|pair| pair[0].0 == pair[1].0)
}

/// Groups elements with the same name, in the order of their first occurrence.
pub(crate) fn group<T>(members: Vec<(String, T)>) -> Vec<(String, Vec<T>)> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<(String, Vec<T>)> = Vec::new();
    for (name, member) in members {
        if let Some(place) = places.get(&name) {
            groups[*place].1.push(member);
        } else {
            places.insert(name.clone(), groups.len());
            groups.push((name, vec![member]));
        }
    }
    groups
}
