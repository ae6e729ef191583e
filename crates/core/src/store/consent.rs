//! A person's consent to one call, stored with the task.

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::digest::Digest;
use crate::ids::ApprovalId;
use crate::json::canonical;

/// A person's consent to exactly one call. A task without consent runs only if it needs no approval at the time it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The approval request that was approved; `None` if a person made the call directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// Digest of the call, its arguments and the definition of its tool.
    pub digest: Digest,
}

impl Consent {
    /// Creates the consent of the person who makes this call.
    #[must_use]
    pub fn of_caller(call: &ToolCall, definition: Digest) -> Self {
        Self { approval: None, digest: digest(call, definition) }
    }

    /// Creates the consent of the person who approved this call.
    #[must_use]
    pub fn of_approval(approval: ApprovalId, call: &ToolCall, definition: Digest) -> Self {
        Self { approval: Some(approval), digest: digest(call, definition) }
    }

    /// Returns whether the consent covers this call to a tool with this definition.
    #[must_use]
    pub fn covers(&self, call: &ToolCall, definition: Digest) -> bool {
        self.digest == digest(call, definition)
    }

    /// Returns the consent to the same call after its secrets were replaced with placeholders or restored.
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
