//! A person's consent to one exact call, stored with the queued call.

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::digest::Digest;
use crate::ids::ApprovalId;
use crate::json::canonical;

/// A person's consent to one exact call. Without it, a queued call runs only if it needs no approval when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The approval that was granted; `None` if a person made the call directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// Digest of the call, its arguments and the definition of its tool.
    pub digest: Digest,
}

impl Consent {
    /// The consent of the person who makes this call.
    #[must_use]
    pub fn of_caller(call: &ToolCall, definition: Digest) -> Self {
        Self { approval: None, digest: digest(call, definition) }
    }

    /// The consent of the person who approved this call.
    #[must_use]
    pub fn of_approval(approval: ApprovalId, call: &ToolCall, definition: Digest) -> Self {
        Self { approval: Some(approval), digest: digest(call, definition) }
    }

    /// Whether it is for this call of a tool with this definition.
    #[must_use]
    pub fn covers(&self, call: &ToolCall, definition: Digest) -> bool {
        self.digest == digest(call, definition)
    }

    /// The consent for the same call with its secrets replaced by placeholders, or the reverse.
    pub(super) fn respelled(self, before: &ToolCall, after: &ToolCall, definition: Digest) -> Self {
        if self.covers(before, definition) { Self { digest: digest(after, definition), ..self } } else { self }
    }
}

fn digest(call: &ToolCall, definition: Digest) -> Digest {
    Digest::of([call.id.to_string().as_bytes(), definition.as_bytes(), canonical(&call.arguments).as_bytes()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn consent_is_for_one_call_of_one_definition() {
        let (call, definition) = (ToolCall::new("wipe", json!({"disk": 1})), Digest::of([b"wipe".as_slice()]));
        let consent = Consent::of_caller(&call, definition);
        assert!(consent.covers(&call, definition));
        assert!(!consent.covers(&call, Digest::of([b"wipe!".as_slice()])));
        assert!(!consent.covers(&ToolCall { arguments: json!({"disk": 2}), ..call.clone() }, definition));
        assert!(!consent.covers(&ToolCall::new("wipe", json!({"disk": 1})), definition), "each call has its own");
    }
}
