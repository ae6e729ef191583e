//! A conversation: its messages, and the tools that a person allowed for the whole conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use helve_core::{ConversationId, Digest, Message, Usage};
use serde::{Deserialize, Serialize};

/// The messages between an agent and a person. Every call in the messages has a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Conversation {
    /// The id of the conversation.
    pub id: ConversationId,
    /// The messages, without the system prompt.
    pub messages: Vec<Arc<Message>>,
    /// Digests of the tools that a person allowed for the whole conversation. A tool that changes needs approval again.
    #[serde(default)]
    pub allowed: BTreeSet<Digest>,
    /// Tokens and cost of all runs of the conversation.
    #[serde(default)]
    pub usage: Usage,
}

impl Conversation {
    /// Creates an empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self { id: ConversationId::mint(), messages: Vec::new(), allowed: BTreeSet::new(), usage: Usage::default() }
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}
