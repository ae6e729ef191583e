//! Runs in order: what was said, and what a person allowed once and for all.

use std::collections::BTreeSet;
use std::sync::Arc;

use helve_core::{ConversationId, Digest, Message, Usage};
use serde::{Deserialize, Serialize};

/// What an agent and a person said to each other. Every call in it is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Conversation {
    /// Names it.
    pub id: ConversationId,
    /// What was said. The system prompt is no part of it.
    pub messages: Vec<Arc<Message>>,
    /// The tools that a person allowed for all of it, each bound to what it was then.
    #[serde(default)]
    pub allowed: BTreeSet<Digest>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

impl Conversation {
    /// A conversation in which nothing was said yet.
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
