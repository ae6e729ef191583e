//! A YAML value and its position.

use serde_json::{Map, Value};

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
}

/// A closure that gets a JSON pointer and the string at it, and returns the replacement, or `None` to keep the string.
type Rewrite<'a, E> = dyn FnMut(&str, &str) -> Result<Option<String>, E> + 'a;

/// A YAML value with its position.
#[derive(Debug, Clone)]
pub struct Node {
    /// The position of the start of the value.
    pub position: Position,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) position: Position,
    pub(super) value: Node,
}

impl Node {
    /// Returns the value as JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.value())).collect::<Map<_, _>>())
            }
        }
    }

    /// Returns whether the value is a map with this key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        matches!(&self.content, Content::Map(entries) if entries.iter().any(|entry| entry.key == key))
    }

    /// Returns the keys of a map; none for other values.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = if let Content::Map(entries) = &self.content { entries.as_slice() } else { &[] };
        entries.iter().map(|entry| entry.key.as_str())
    }

    /// Returns whether any string in the value satisfies a predicate.
    #[must_use]
    pub(crate) fn any_text(&self, is: &impl Fn(&str) -> bool) -> bool {
        match &self.content {
            Content::Scalar(Value::String(text)) => is(text),
            Content::Scalar(_) => false,
            Content::List(items) => items.iter().any(|item| item.any_text(is)),
            Content::Map(entries) => entries.iter().any(|entry| entry.value.any_text(is)),
        }
    }

    /// Removes the fields of a map that do not satisfy a predicate.
    pub(crate) fn retain_fields(&mut self, mut wanted: impl FnMut(&str) -> bool) {
        if let Content::Map(entries) = &mut self.content {
            entries.retain(|entry| wanted(&entry.key));
        }
    }

    /// Returns the position of the value at a JSON pointer: of its key, of the list item, or of the nearest existing parent.
    #[must_use]
    pub fn locate(&self, pointer: &str) -> Position {
        let mut node = self;
        let mut position = self.position;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &node.content {
                Content::Map(entries) => entries.iter().find(|entry| entry.key == step).map(|entry| (entry.position, &entry.value)),
                Content::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)).map(|item| (item.position, item)),
                Content::Scalar(_) => None,
            };
            let Some((found, inner)) = next else { break };
            position = found;
            node = inner;
        }
        position
    }

    /// Replaces every string for which the closure returns a new one.
    ///
    /// # Errors
    /// Returns the first error of the closure.
    pub(crate) fn rewrite<E>(&mut self, rewrite: &mut Rewrite<'_, E>) -> Result<(), E> {
        self.rewrite_at(&mut String::new(), rewrite)
    }

    fn rewrite_at<E>(&mut self, at: &mut String, rewrite: &mut Rewrite<'_, E>) -> Result<(), E> {
        let length = at.len();
        match &mut self.content {
            Content::Scalar(Value::String(text)) => {
                if let Some(new) = rewrite(at, text)? {
                    *text = new;
                }
            }
            Content::Scalar(_) => {}
            Content::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    at.push('/');
                    at.push_str(&index.to_string());
                    item.rewrite_at(at, rewrite)?;
                    at.truncate(length);
                }
            }
            Content::Map(entries) => {
                for entry in entries {
                    at.push('/');
                    at.push_str(&entry.key.replace('~', "~0").replace('/', "~1"));
                    entry.value.rewrite_at(at, rewrite)?;
                    at.truncate(length);
                }
            }
        }
        Ok(())
    }

    /// Returns the number of values, and their size in bytes, with aliases expanded.
    pub(super) fn size(&self) -> (usize, usize) {
        let add = |(nodes, bytes): (usize, usize), (more, text): (usize, usize)| (nodes + more, bytes + text);
        match &self.content {
            Content::Scalar(value) => (1, value.as_str().map_or(8, str::len)),
            Content::List(items) => items.iter().map(Self::size).fold((1, 0), add),
            Content::Map(entries) => entries.iter().map(|entry| add((0, entry.key.len()), entry.value.size())).fold((1, 0), add),
        }
    }
}
