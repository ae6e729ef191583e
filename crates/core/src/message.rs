//! What is said in a conversation with a model. A message never changes, so it is shared, and written once for its wire.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::CallId;

/// One thing that was said.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message {
    body: MessageBody,
    #[serde(skip)]
    written: Written,
}

impl Message {
    /// A message.
    #[must_use]
    pub fn new(body: MessageBody) -> Self {
        Self { body, written: Written::default() }
    }

    /// What the model is told before anyone speaks.
    #[must_use]
    pub fn system(text: impl Into<Arc<str>>) -> Self {
        Self::new(MessageBody::System { text: text.into() })
    }

    /// A plain text from the user.
    #[must_use]
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::new(MessageBody::User { parts: vec![Part::Text { text: text.into() }] })
    }

    /// A plain text from the model.
    #[must_use]
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::new(MessageBody::Assistant { text: text.into(), reasoning: None, calls: Vec::new(), kept: None })
    }

    /// What was said, and by whom.
    #[must_use]
    pub fn body(&self) -> &MessageBody {
        &self.body
    }

    /// The message in the form of a wire, written the first time it is asked for.
    #[must_use]
    pub fn written(&self) -> &Written {
        &self.written
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.body.fmt(f)
    }
}

/// What was said, and by whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageBody {
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
        calls: Vec<SaidCall>,
        /// What its provider wants back as it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<ProviderParts>,
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
        /// What the model reads, between the marks of [`crate::untrusted`] or of its dialect: any tool may give text from outside.
        text: String,
        /// Whether the call ended well.
        success: bool,
    },
}

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidCall {
    /// Minted by Helve, unique.
    pub id: CallId,
    /// The id the model gave, for its wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<Arc<str>>,
    /// The tool's name as the model wrote it.
    pub tool: Arc<str>,
    /// The arguments: one JSON object, as the model wrote it where that was one.
    pub arguments: String,
    /// The model that made it by its own function calling; nothing where it was found in text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_model: Option<Arc<str>>,
}

impl SaidCall {
    /// The id that the model's wire knows the call by.
    #[must_use]
    pub fn wire_id(&self) -> Cow<'_, str> {
        wire_id(self.model_id.as_ref(), self.id)
    }
}

/// The id that a model's wire knows a call by: the model's own, or Helve's where it gave none.
#[must_use]
pub fn wire_id(model_id: Option<&Arc<str>>, id: CallId) -> Cow<'_, str> {
    match model_id {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(id.to_string()),
    }
}

/// Parts of an answer that only their provider understands and wants back, such as signed or encrypted thoughts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderParts {
    /// Whose they are.
    pub format: Arc<str>,
    /// The parts, in order.
    pub parts: Vec<Value>,
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

/// Room for most messages.
const SMALL: usize = 192;

/// Something that never changes, in the form of a wire: written for the first wire that asks, and kept.
#[derive(Debug, Clone, Default)]
pub struct Written(OnceLock<(&'static str, Vec<u8>)>);

impl Written {
    /// Appends the form that `wire` knows. `write` must always write the same for the same wire.
    pub fn append(&self, wire: &'static str, into: &mut Vec<u8>, write: impl Fn(&mut Vec<u8>)) {
        let (known, bytes) = self.get(wire, &write);
        if *known == wire {
            into.extend_from_slice(bytes);
        } else {
            write(into);
        }
    }

    fn get(&self, wire: &'static str, write: &impl Fn(&mut Vec<u8>)) -> &(&'static str, Vec<u8>) {
        self.0.get_or_init(|| {
            let mut bytes = Vec::with_capacity(SMALL);
            write(&mut bytes);
            (wire, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_come_back_from_the_wire() {
        let (model_id, native_model) = (Some("call_1".into()), Some("big".into()));
        let call = SaidCall { id: CallId::mint(), model_id, tool: "add".into(), arguments: "{\"a\": 1}".into(), native_model };
        let (call_id, kept) = (call.id, Some(ProviderParts { format: "x".into(), parts: vec![json!({"signature": "s"})] }));
        let messages = [
            Message::system("Be brief."),
            Message::user("1 + 1?"),
            Message::new(MessageBody::Assistant { text: "".into(), reasoning: Some("hm".into()), calls: vec![call], kept }),
            Message::new(MessageBody::Tool {
                call_id,
                model_id: Some("call_1".into()),
                tool: "add".into(),
                text: "2".into(),
                success: true,
            }),
            Message::assistant("2"),
        ];
        for message in messages {
            let wire = json!(message);
            assert_eq!(serde_json::from_value::<Message>(wire).ok(), Some(message));
        }
        assert_eq!(json!(Message::assistant("2")), json!({"role": "assistant", "text": "2"}));
    }

    #[test]
    fn a_message_is_written_once_for_one_wire_and_anew_for_another() {
        let (message, mut into) = (Message::user("hi"), Vec::new());
        message.written().append("one", &mut into, |bytes| bytes.extend(b"1"));
        message.written().append("one", &mut into, |_| unreachable!("it is known"));
        message.written().append("two", &mut into, |bytes| bytes.extend(b"2"));
        assert_eq!(into, b"112");
    }
}
