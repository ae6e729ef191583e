//! Parses YAML into a tree of values with positions.
//!
//! Project files are untrusted, so size and depth are limited. An alias counts as much as the value that it refers to, which prevents
//! alias bombs. A duplicate key is an error.

mod node;
mod scalar;

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use self::node::{Content, Entry};
pub use self::node::{Node, Position};

/// Maximum size of a file, and of its strings after aliases are expanded, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Maximum depth of nested lists and maps.
const MAX_DEPTH: usize = 64;
/// Maximum number of values after aliases are expanded.
const MAX_NODES: usize = 50_000;

/// An error in a YAML text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The position of the error.
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// How to fix the error.
    pub hint: Option<String>,
}

impl YamlError {
    fn new(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Parses one YAML document. Returns an empty map for an empty text.
///
/// # Errors
/// Returns an error if the text is not valid YAML, contains several documents, repeats a key or exceeds a limit.
pub fn read(text: &str) -> Result<Node, YamlError> {
    let start = Position { line: 1, column: 1 };
    if text.len() > MAX_BYTES {
        return Err(YamlError::new(start, format!("the file is larger than {MAX_BYTES} bytes")));
    }
    let mut builder = Builder::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax(text, &error))?;
        if matches!(event, Event::DocumentStart(_)) {
            documents += 1;
            if documents > 1 {
                return Err(YamlError::new(position(&span), "the file contains more than one YAML document")
                    .hint("remove the `---` line, or split the file"));
            }
        }
        builder.take(event, &span)?;
    }
    Ok(builder.root.unwrap_or_else(|| Node { position: start, content: Content::Map(Vec::new()) }))
}

fn position(span: &Span) -> Position {
    Position { line: span.start.line(), column: span.start.col() + 1 }
}

fn syntax(text: &str, error: &saphyr_parser::ScanError) -> YamlError {
    let at = Position { line: error.marker().line(), column: error.marker().col() + 1 };
    let has_tab = |line: &&str| line.chars().take_while(|character| character.is_whitespace()).any(|character| character == '\t');
    // The parser reports a tab in the indentation with various messages, often a line late, so look for a tab nearby.
    let near = text.lines().enumerate().skip(at.line.saturating_sub(3)).take(4).find(|(_, line)| has_tab(line));
    match near {
        Some((index, _)) => {
            YamlError::new(Position { line: index + 1, column: 1 }, "YAML does not allow tabs for indentation").hint("indent with spaces")
        }
        None => YamlError::new(at, format!("invalid YAML: {}", error.info())),
    }
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    bytes: usize,
}

/// A list or map whose end has not been parsed yet.
struct OpenNode {
    position: Position,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, key: Option<(String, Position)>, lines: HashMap<String, usize> },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlError> {
        let at = position(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let as_text = tag.as_ref().is_some_and(|tag| tag.suffix == "str");
                if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
                    return Err(YamlError::new(at, format!("unsupported YAML tag `{}{}`", tag.handle, tag.suffix)));
                }
                if self.wants_key() {
                    return self.take_key(text.into_owned(), at);
                }
                let value = if plain && !as_text { scalar::resolve(&text) } else { text.into_owned().into() };
                self.finish(Node { position: at, content: Content::Scalar(value) }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(OpenNode { position: at, anchor, kind: OpenKind::List(Vec::new()) }),
            Event::MappingStart(anchor, _) => {
                self.open(OpenNode { position: at, anchor, kind: OpenKind::Map { entries: Vec::new(), key: None, lines: HashMap::new() } })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(OpenNode { position, anchor, kind: OpenKind::List(items) }) => {
                    self.finish(Node { position, content: Content::List(items) }, anchor)
                }
                Some(OpenNode { position, anchor, kind: OpenKind::Map { entries, .. } }) => {
                    self.finish(Node { position, content: Content::Map(entries) }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                if self.wants_key() {
                    return Err(YamlError::new(at, "an alias cannot be used as a key"));
                }
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| YamlError::new(at, "the alias refers to itself or to an unknown anchor"))?;
                let (nodes, bytes) = node.size();
                self.count(nodes, bytes, at)?;
                self.finish(node, 0)
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => Ok(()),
        }
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenNode { kind: OpenKind::Map { key: None, .. }, .. }))
    }

    fn take_key(&mut self, text: String, at: Position) -> Result<(), YamlError> {
        if text == "<<" {
            return Err(YamlError::new(at, "merge keys (`<<`) are not supported").hint("repeat the fields instead"));
        }
        if let Some(OpenNode { kind: OpenKind::Map { key, lines, .. }, .. }) = self.open.last_mut() {
            if let Some(line) = lines.insert(text.clone(), at.line) {
                return Err(YamlError::new(at, format!("duplicate key `{text}`, first used on line {line}")));
            }
            *key = Some((text, at));
        }
        Ok(())
    }

    fn open(&mut self, open: OpenNode) -> Result<(), YamlError> {
        if self.wants_key() {
            return Err(
                YamlError::new(open.position, "a key must be a string").hint("quote a value that starts with a brace: \"{{ name }}\"")
            );
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError::new(open.position, format!("the file is nested more than {MAX_DEPTH} levels deep")));
        }
        self.open.push(open);
        Ok(())
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        self.count(1, 0, node.position)?;
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.kind) {
            Some(OpenKind::List(items)) => items.push(node),
            Some(OpenKind::Map { entries, key, .. }) => {
                if let Some((key, position)) = key.take() {
                    entries.push(Entry { key, position, value: node });
                }
            }
            None => self.root = Some(node),
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, bytes: usize, at: Position) -> Result<(), YamlError> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.nodes > MAX_NODES || self.bytes > MAX_BYTES {
            return Err(YamlError::new(
                at,
                format!(
                    "the file expands to more than {MAX_NODES} values or {MAX_BYTES} bytes; each alias counts as the value it refers to"
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
