//! What is said in a conversation with a model. A message never changes, so it is shared and kept as it was sent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::ids::CallId;

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// What the model is told before anyone speaks.
    System {
        /// The instructions.
        text: Arc<str>,
    },
    /// What the user said.
    User {
        /// Words and pictures, in order.
        parts: Vec<Part>,
    },
    /// What the model said.
    Assistant {
        /// Its words.
        text: Arc<str>,
        /// What it thought aloud, where it shows that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Arc<str>>,
        /// The tools it called, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// What came of one call. Every call of an assistant message is answered before the model speaks again.
    Tool {
        /// The call.
        call_id: CallId,
        /// The id the model gave, for its wire.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_id: Option<Arc<str>>,
        /// The tool's name as the model knows it.
        tool: Arc<str>,
        /// What the model reads.
        text: Arc<str>,
        /// Whether the call ended well.
        success: bool,
    },
}

impl Message {
    /// A plain text from the user.
    #[must_use]
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { parts: vec![Part::Text { text: text.into() }] }
    }

    /// A plain text from the model.
    #[must_use]
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::Assistant { text: text.into(), reasoning: None, calls: Vec::new() }
    }
}

/// A piece of what the user said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: Arc<str>,
    },
    /// A picture.
    Image {
        /// Such as `image/png`.
        media_type: Arc<str>,
        /// The picture in Base64.
        data: Arc<str>,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_come_back_from_the_wire() {
        let call = ToolCall::new("add", json!({"a": 1}));
        let messages = [
            Message::System { text: "Be brief.".into() },
            Message::user("1 + 1?"),
            Message::Assistant { text: "".into(), reasoning: Some("hm".into()), calls: vec![call.clone()] },
            Message::Tool { call_id: call.id, model_id: Some("call_1".into()), tool: "add".into(), text: "2".into(), success: true },
            Message::assistant("2"),
        ];
        for message in messages {
            let wire = json!(message);
            assert_eq!(serde_json::from_value::<Message>(wire).ok(), Some(message));
        }
        assert_eq!(json!(Message::assistant("2")), json!({"role": "assistant", "text": "2"}));
    }
}
