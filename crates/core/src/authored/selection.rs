//! Which tools of a server or a document are offered, and under which names.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern::Pattern;

/// Selects and names the tools of a server or a document. Flatten it into the file's own type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SelectionFields {
    /// Prefix of the tool names. For a server: its name if omitted, none if empty.
    pub prefix: Option<String>,
    /// Only tools with these names; patterns are allowed. All tools if omitted.
    pub include: Vec<Pattern>,
    /// No tools with these names; patterns are allowed.
    pub exclude: Vec<Pattern>,
}

impl SelectionFields {
    /// The prefix, or the default if the file has none.
    #[must_use]
    pub fn prefix<'a>(&'a self, default: &'a str) -> &'a str {
        self.prefix.as_deref().unwrap_or(default)
    }

    /// The name of a tool without its prefix. Returns `None` if the name does not have the prefix, or consists of nothing else.
    #[must_use]
    pub fn own_name<'n>(&self, default_prefix: &str, name: &'n str) -> Option<&'n str> {
        let own = match self.prefix(default_prefix) {
            "" => Some(name),
            prefix => name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')),
        };
        own.filter(|own| !own.is_empty())
    }

    /// Returns whether a tool is selected, by its name without the prefix.
    #[must_use]
    pub fn selects(&self, own_name: &str) -> bool {
        self.selects_by(|pattern| pattern.matches(own_name))
    }

    /// Like [`selects`](Self::selects), for a tool that patterns may match in more than one way.
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
