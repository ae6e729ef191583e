//! A request to a person about one exact call, and the answer that can only open that call.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approver::Decision;
use crate::call::{Caller, ToolCall};
pub use crate::digest::Digest;
use crate::ids::ApprovalId;
use crate::input::{InputGiven, InputNeeded};
use crate::json::canonical;
use crate::source::SourceId;
use crate::spec::ToolSpec;

/// A call that waits for a person. It can be stored, shown elsewhere and answered days later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Names the request.
    pub id: ApprovalId,
    /// The exact call that will run.
    pub call: ToolCall,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// Binds the answer to this call, these arguments and this definition of the tool.
    pub digest: Digest,
    /// Why a person is asked.
    pub reason: String,
    /// On whose behalf the call is made.
    pub caller: Caller,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it can no longer be answered; none means never.
    pub expires_at: Option<Timestamp>,
    /// What the tool wants to know, where the request is not whether the call may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<InputNeeded>>,
}

impl ApprovalRequest {
    /// Asks about one call.
    #[must_use]
    pub fn new(call: ToolCall, source: &SourceId, spec: &ToolSpec, caller: Caller, reason: String) -> Self {
        let (tool, digest) = (spec.name().clone(), call_digest(&call, source, spec));
        Self { id: ApprovalId::mint(), call, tool, digest, reason, caller, asked_at: Timestamp::now(), expires_at: None, input: None }
    }

    /// Asks what a call needs to know that has begun already.
    #[must_use]
    pub fn about_input(call: ToolCall, source: &SourceId, spec: &ToolSpec, caller: Caller, needed: InputNeeded) -> Self {
        let digest = input_digest(call_digest(&call, source, spec), &needed.state);
        let request = Self::new(call, source, spec, caller, needed.summary());
        Self { digest, input: Some(Box::new(needed)), ..request }
    }

    /// Turns what an approver said into the grant that re-enters the executor; `None` if the answer comes later.
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

    /// Turns what a person wrote into the grant that re-enters the executor, where the tool wants to know something.
    #[must_use]
    pub fn resolve_with(&self, written: &Value, by: impl Into<String>) -> Grant {
        let mut grant = self.resolve(Verdict::Approve, by);
        if grant.verdict == Verdict::Approve {
            grant.given = self.input.as_ref().map(|needed| needed.give(written));
        }
        grant
    }

    /// Turns a person's answer into the grant that re-enters the executor. An answer that comes too late is none.
    #[must_use]
    pub fn resolve(&self, verdict: Verdict, by: impl Into<String>) -> Grant {
        let late = self.expires_at.is_some_and(|end| end <= Timestamp::now());
        let verdict = if late { Verdict::Expired } else { verdict };
        // A yes without a word means what the tool would take anyway.
        let given = self.input.as_ref().map(|needed| match verdict {
            Verdict::Approve => needed.give(&Value::Null),
            Verdict::Deny | Verdict::Expired => needed.decline(),
        });
        Grant { approval_id: self.id, digest: self.digest, verdict, reason: None, by: by.into(), given, arguments: None }
    }
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run.
    Approve,
    /// It may not.
    Deny,
    /// Nobody answered in time.
    Expired,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The answer to one request. It opens exactly the call whose digest it carries, once.
///
/// It is deliberately not `Clone`: a grant is used up by the call it opens.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The request.
    pub approval_id: ApprovalId,
    /// The exact call that was shown.
    pub digest: Digest,
    /// Yes or no.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// What the person said besides yes or no; told to the model on denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who answered.
    pub by: String,
    /// What the tool is told, where it wanted to know something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<InputGiven>,
    /// The arguments that the person wrote instead of those that were shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl Grant {
    /// The same answer, with a word to the model.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// What a grant is bound to that answers what a call wants to know: the call, and where it stopped.
#[must_use]
pub fn input_digest(call: Digest, state: &Value) -> Digest {
    Digest::of([call.as_bytes().as_slice(), canonical(state).as_bytes()])
}

/// What a grant is bound to: the call's id, where the tool comes from, how it is defined and what stands behind it,
/// and the canonical arguments.
#[must_use]
pub fn call_digest(call: &ToolCall, source: &SourceId, spec: &ToolSpec) -> Digest {
    let id = call.id.to_string();
    let arguments = canonical(&call.arguments);
    let behind = spec.implementation();
    let behind = behind.as_ref().map_or(&[][..], |digest| digest.as_bytes());
    Digest::of([id.as_bytes(), source.as_str().as_bytes(), spec.hash().as_bytes(), behind, arguments.as_bytes()])
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
