//! Changes of which a server notifies its clients.

use serde_json::{Value, json};

use crate::Message;

/// Maximum length of the URI of a resource in bytes.
const MAX_URI: usize = 8 << 10;

/// A change on a server, of which the server notifies its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The list of tools changed.
    Tools,
    /// The list of prompts changed.
    Prompts,
    /// The list of resources changed.
    Resources,
    /// The content of the resource with this URI changed.
    Resource(String),
}

impl Change {
    /// The lists whose changes a server can announce.
    pub const LISTS: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// Parses a notification. Returns `None` if it does not announce a change, or if its URI is missing or too long.
    #[must_use]
    pub fn read(method: &str, params: &Value) -> Option<Self> {
        match method {
            "notifications/tools/list_changed" => Some(Self::Tools),
            "notifications/prompts/list_changed" => Some(Self::Prompts),
            "notifications/resources/list_changed" => Some(Self::Resources),
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str).filter(|uri| uri.len() <= MAX_URI)?;
                Some(Self::Resource(uri.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the method and the parameters of the notification that announces the change.
    #[must_use]
    pub fn notification(&self) -> (&'static str, Value) {
        match self {
            Self::Tools => ("notifications/tools/list_changed", json!({})),
            Self::Prompts => ("notifications/prompts/list_changed", json!({})),
            Self::Resources => ("notifications/resources/list_changed", json!({})),
            Self::Resource(uri) => ("notifications/resources/updated", json!({"uri": uri})),
        }
    }

    /// Serialises the notification that announces the change as a JSON-RPC message.
    #[must_use]
    pub fn write(&self) -> String {
        let (method, params) = self.notification();
        Message::Notification { method: method.to_owned(), params: Some(params) }.write()
    }

    /// Returns whether a server with these `capabilities` announces such changes.
    #[must_use]
    pub fn is_declared(&self, capabilities: &Value) -> bool {
        let (group, flag) = match self {
            Self::Tools => ("tools", "listChanged"),
            Self::Prompts => ("prompts", "listChanged"),
            Self::Resources => ("resources", "listChanged"),
            Self::Resource(_) => ("resources", "subscribe"),
        };
        capabilities.get(group).and_then(|group| group.get(flag)) == Some(&Value::Bool(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_comes_back_as_the_change_it_reports() {
        for change in Change::LISTS.into_iter().chain([Change::Resource("a:b".to_owned())]) {
            let (method, params) = change.notification();
            assert_eq!(Change::read(method, &params), Some(change));
        }
        assert_eq!(Change::read("notifications/progress", &json!({})), None);
        for uri in [json!(null), json!("x".repeat(MAX_URI + 1))] {
            assert_eq!(Change::read("notifications/resources/updated", &json!({"uri": uri})), None);
        }
    }
}
