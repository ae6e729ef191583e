//! Approval requests, and the grant that permits exactly one call.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approver::Decision;
use crate::call::{Caller, ToolCall};
pub use crate::digest::Digest;
use crate::ids::ApprovalId;
use crate::input::{InputNeeded, InputResponse};
use crate::json::canonical;
use crate::source::SourceId;
use crate::spec::ToolSpec;

/// A request to a person: to approve a call, or to give the input that a tool needs. It can be stored, and decided days later elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The id of the request.
    pub id: ApprovalId,
    /// The exact call that will run.
    pub call: ToolCall,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// The digest that binds the decision to this call, its arguments and the definition of its tool.
    pub digest: Digest,
    /// Why the call needs approval.
    pub reason: String,
    /// The caller that made the call.
    pub caller: Caller,
    /// When the request was created.
    pub asked_at: Timestamp,
    /// When the request expires; `None` if never.
    pub expires_at: Option<Timestamp>,
    /// The input that the tool needs. If set, the request asks for this input instead of an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<InputNeeded>>,
}

impl ApprovalRequest {
    /// Creates a request to approve a call.
    #[must_use]
    pub fn new(call: ToolCall, source: &SourceId, spec: &ToolSpec, caller: Caller, reason: String) -> Self {
        let (tool, digest) = (spec.name().clone(), call_digest(&call, source, spec));
        Self { id: ApprovalId::mint(), call, tool, digest, reason, caller, asked_at: Timestamp::now(), expires_at: None, input: None }
    }

    /// Creates a request for the input that a running call needs.
    #[must_use]
    pub fn about_input(call: ToolCall, source: &SourceId, spec: &ToolSpec, caller: Caller, needed: InputNeeded) -> Self {
        let digest = input_digest(call_digest(&call, source, spec), &needed.state);
        let request = Self::new(call, source, spec, caller, needed.summary());
        Self { digest, input: Some(Box::new(needed)), ..request }
    }

    /// Turns a decision into a grant for the executor. Returns `None` for [`Decision::Later`].
    #[must_use]
    pub fn grant(&self, decision: Decision, by: impl Into<String>) -> Option<Grant> {
        Some(match decision {
            Decision::Later => return None,
            Decision::Expired => self.resolve(Verdict::Expired, by),
            Decision::Approve | Decision::Always => self.resolve(Verdict::Approve, by),
            Decision::Deny { reason } => Grant { reason, ..self.resolve(Verdict::Deny, by) },
            Decision::Edit(written) if self.input.is_some() => self.resolve_with(&written, by),
            Decision::Edit(arguments) => Grant { arguments: Some(arguments), ..self.resolve(Verdict::Approve, by) },
        })
    }

    /// Turns a person's response to an input request into a grant.
    #[must_use]
    pub fn resolve_with(&self, written: &Value, by: impl Into<String>) -> Grant {
        let mut grant = self.resolve(Verdict::Approve, by);
        if grant.verdict == Verdict::Approve {
            grant.given = self.input.as_ref().map(|needed| needed.give(written));
        }
        grant
    }

    /// Turns a verdict into a grant. If the request has expired, the verdict of the grant is [`Verdict::Expired`].
    #[must_use]
    pub fn resolve(&self, verdict: Verdict, by: impl Into<String>) -> Grant {
        let late = self.expires_at.is_some_and(|end| end <= Timestamp::now());
        let verdict = if late { Verdict::Expired } else { verdict };
        // Approval without a response means that the schema's defaults apply.
        let given = self.input.as_ref().map(|needed| match verdict {
            Verdict::Approve => needed.give(&Value::Null),
            Verdict::Deny | Verdict::Expired => needed.decline(),
        });
        Grant { approval_id: self.id, digest: self.digest, verdict, reason: None, by: by.into(), given, arguments: None }
    }
}

/// The recorded result of a request: approved, denied or expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run.
    Approve,
    /// The call must not run.
    Deny,
    /// The request expired before a person decided.
    Expired,
}

/// A decision on a request, bound to one call. It permits the call with the same digest, once.
///
/// A grant is deliberately not `Clone`: the call that it permits consumes it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The id of the request that was decided.
    pub approval_id: ApprovalId,
    /// The digest of the call that the person saw.
    pub digest: Digest,
    /// The verdict on the request.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// On denial: a message for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the person or program that decided.
    pub by: String,
    /// The response to the tool's input requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<InputResponse>,
    /// Arguments that replace those that the person saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl Grant {
    /// Sets the message for the model.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// Returns the digest of an input request: that of the call and of the state at which the tool stopped.
#[must_use]
pub fn input_digest(call: Digest, state: &Value) -> Digest {
    Digest::of([call.as_bytes().as_slice(), canonical(state).as_bytes()])
}

/// Returns the digest of a call: of its id, the tool's source, definition and implementation, and the canonical arguments.
#[must_use]
pub fn call_digest(call: &ToolCall, source: &SourceId, spec: &ToolSpec) -> Digest {
    let id = call.id.to_string();
    let arguments = canonical(&call.arguments);
    let implementation = spec.implementation();
    let implementation = implementation.as_ref().map_or(&[][..], |digest| digest.as_bytes());
    Digest::of([id.as_bytes(), source.as_str().as_bytes(), spec.hash().as_bytes(), implementation, arguments.as_bytes()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    fn request() -> ApprovalRequest {
        let spec = ToolSpec::new("wipe", "Wipes a disk.", Schema::any_object()).expect("a spec");
        ApprovalRequest::new(ToolCall::new("wipe", json!({"disk": 1})), &"s".into(), &spec, Caller::default(), "because".into())
    }

    #[test]
    fn a_question_survives_a_restart() {
        let request = request();
        let stored = serde_json::to_string(&request).expect("writable");
        assert_eq!(serde_json::from_str::<ApprovalRequest>(&stored).ok(), Some(request));
    }

    #[test]
    fn a_late_answer_is_no_answer() {
        let mut request = request();
        request.expires_at = Some(Timestamp::now());
        assert_eq!(request.resolve(Verdict::Approve, "ada").verdict, Verdict::Expired);
        request.expires_at = Some(Timestamp::MAX);
        assert_eq!(request.resolve(Verdict::Approve, "ada").verdict, Verdict::Approve);
    }

    #[test]
    fn the_digest_follows_every_part_of_the_call() {
        let spec = ToolSpec::new("wipe", "Wipes a disk.", Schema::any_object()).expect("a spec");
        let other = ToolSpec::new("wipe", "Wipes a disk!", Schema::any_object()).expect("a spec");
        let call = ToolCall::new("wipe", json!({"disk": 1, "fast": true}));
        let here = SourceId::from("s");
        let digest = call_digest(&call, &here, &spec);
        let reordered = ToolCall { arguments: json!({"fast": true, "disk": 1}), ..call.clone() };
        assert_eq!(digest, call_digest(&reordered, &here, &spec));
        let changed = ToolCall { arguments: json!({"disk": 2, "fast": true}), ..call.clone() };
        assert_ne!(digest, call_digest(&changed, &here, &spec));
        assert_ne!(digest, call_digest(&call, &here, &other));
        assert_ne!(digest, call_digest(&call, &SourceId::from("elsewhere"), &spec));
        let rebuilt = spec.clone().with_implementation(Digest::of([b"rm -rf".as_slice()]));
        assert_ne!(digest, call_digest(&call, &here, &rebuilt));
        assert_ne!(digest, call_digest(&ToolCall::new("wipe", call.arguments.clone()), &here, &spec));
    }
}
