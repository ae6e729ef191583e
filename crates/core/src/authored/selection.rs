//! Selects which tools of a server or an OpenAPI document are offered, and under which names.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern::Pattern;

/// The fields of a file that select and name the tools of a server or an OpenAPI document. Flatten this struct into the type of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SelectionFields {
    /// Prefix of the tool names. For a server, the default is the server's name; an empty string means no prefix.
    pub prefix: Option<String>,
    /// Offer only tools whose names match one of these patterns. By default all tools.
    pub include: Vec<Pattern>,
    /// Do not offer tools whose names match one of these patterns.
    pub exclude: Vec<Pattern>,
}

impl SelectionFields {
    /// Returns the prefix, or `default` if the file has none.
    #[must_use]
    pub fn prefix<'a>(&'a self, default: &'a str) -> &'a str {
        self.prefix.as_deref().unwrap_or(default)
    }

    /// Removes the prefix from the name of a tool. Returns `None` if the name does not start with the prefix, or equals it.
    #[must_use]
    pub fn own_name<'n>(&self, default_prefix: &str, name: &'n str) -> Option<&'n str> {
        let own = match self.prefix(default_prefix) {
            "" => Some(name),
            prefix => name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')),
        };
        own.filter(|own| !own.is_empty())
    }

    /// Returns whether the patterns select a tool, given its name without the prefix.
    #[must_use]
    pub fn selects(&self, own_name: &str) -> bool {
        self.selects_by(|pattern| pattern.matches(own_name))
    }

    /// Like [`selects`](Self::selects), but `matches` decides whether a pattern matches the tool.
    pub fn selects_by(&self, matches: impl Fn(&Pattern) -> bool) -> bool {
        (self.include.is_empty() || self.include.iter().any(&matches)) && !self.exclude.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_selected_by_their_own_names() {
        let fields: SelectionFields = serde_json::from_str(r#"{"include": ["read_*"], "exclude": ["read_all"]}"#).expect("fields");
        assert_eq!(fields.own_name("files", "files_read_one"), Some("read_one"));
        for name in ["files_", "files", "other_read_one"] {
            assert_eq!(fields.own_name("files", name), None, "{name}");
        }
        assert!(fields.selects("read_one") && !fields.selects("read_all") && !fields.selects("write"));
        let plain = SelectionFields { prefix: Some(String::new()), ..SelectionFields::default() };
        assert_eq!((plain.own_name("files", "read"), plain.selects("read")), (Some("read"), true));
    }
}
