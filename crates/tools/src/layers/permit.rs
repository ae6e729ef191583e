//! Decides whether a call runs at once, after approval, or never.

use std::collections::BTreeSet;
use std::sync::Arc;

use helve_core::{
    ApprovalId, ApprovalRequest, CallContext, CallId, Denial, Digest, Grant, InputNeeded, Permission, Policy, Subject, ToolCall, ToolError,
    Verdict, input_digest,
};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::catalogue::Entry;
use crate::toolkit::{Member, Toolkit};

/// Maximum number of used grants to remember. The store remembers them across restarts.
const REMEMBERED: usize = 65_536;

/// The agent name for a queued call that has neither an agent nor a person's consent.
const UNKNOWN_AGENT: &str = "(unknown)";

/// The result of checking the permission of a call.
pub(crate) enum PermitState {
    Allow,
    Refuse(ToolError),
    Ask(Box<ApprovalRequest>),
}

/// Decides by the tool's own permission, the operator's rules, the agent's restrictions, and a person's decision.
pub(crate) struct Permit {
    policy: RwLock<Arc<Policy>>,
    /// Calls whose approval request was decided.
    calls: Mutex<UsedIds<CallId>>,
    /// Input requests that were decided.
    inputs: Mutex<UsedIds<ApprovalId>>,
}

/// Ids that were already used. Ids sort by time, so an id older than the oldest remembered one counts as used.
struct UsedIds<I> {
    ids: BTreeSet<I>,
    forgotten: Option<I>,
}

impl<I> Default for UsedIds<I> {
    fn default() -> Self {
        Self { ids: BTreeSet::new(), forgotten: None }
    }
}

impl<I: Ord + Copy> UsedIds<I> {
    /// Adds an id. Returns whether the id was unused.
    fn insert(&mut self, id: I) -> bool {
        if self.forgotten.is_some_and(|forgotten| id <= forgotten) || !self.ids.insert(id) {
            return false;
        }
        if self.ids.len() > REMEMBERED {
            self.forgotten = self.ids.pop_first();
        }
        true
    }
}

impl Permit {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy: RwLock::new(Arc::new(policy)), calls: Mutex::default(), inputs: Mutex::default() }
    }

    /// Replaces the permission rules.
    pub(crate) fn replace(&self, policy: Policy) {
        *self.policy.write() = Arc::new(policy);
    }

    /// Returns the permission for a person who calls the tool without arguments.
    pub(crate) fn usual(&self, entry: &Entry) -> Permission {
        let policy = self.policy.read().clone();
        let (source, arguments) = (entry.source().as_str(), &Value::Null);
        let subject = Subject { tool: entry.name(), model_name: entry.model_name(), source, sets: &[], agent: None, arguments };
        policy.decide(entry.spec().rules().permission, &subject).permission
    }

    /// Checks a queued call against the rules again, with or without a person's consent. The rules may have changed since the call was
    /// accepted; for example, the folder may no longer be trusted.
    pub(crate) fn check(&self, member: &Member, agent: Option<&str>, call: &ToolCall, consent: bool) -> Result<(), ToolError> {
        // Only people call tools without an agent, and a person's call has consent.
        let agent = agent.or((!consent).then_some(UNKNOWN_AGENT));
        let policy = self.policy.read().clone();
        let ruling = policy.decide(member.entry.spec().rules().permission, &subject(member, agent, call));
        let ruling = ruling.held(agent.and_then(|_| member.entry.tool().held_because()));
        match ruling.permission {
            Permission::Deny => Err(ToolError::denied(Denial::Policy, ruling.reason)),
            Permission::Confirm if !consent => Err(ToolError::denied(Denial::Policy, unapproved(call.id, &ruling.reason))),
            Permission::Confirm | Permission::Auto => Ok(()),
        }
    }

    /// Decides about a call. A grant comes with the digest of the call that the person saw.
    pub(crate) fn decide(
        &self,
        toolkit: &Toolkit,
        member: &Member,
        call: &ToolCall,
        cx: &CallContext,
        grant: Option<(Box<Grant>, Digest)>,
    ) -> PermitState {
        let entry = &member.entry;
        let agent = toolkit.agent().or(cx.caller().agent.as_ref()).map(|agent| &**agent);
        let subject = subject(member, agent, call);
        let policy = self.policy.read().clone();
        let mut ruling = policy.decide(entry.spec().rules().permission, &subject).held(agent.and_then(|_| entry.tool().held_because()));
        let restriction = toolkit.restriction(entry);
        if restriction > ruling.permission {
            ruling.permission = restriction;
            ruling.reason = format!("the agent's own rules say `{restriction}`");
        }
        let ask = |reason| {
            let mut request = ApprovalRequest::new(call.clone(), entry.source(), entry.spec(), toolkit.caller(cx), reason);
            request.expires_at = policy.expires(request.asked_at);
            PermitState::Ask(Box::new(request))
        };
        match (ruling.permission, grant) {
            (Permission::Deny, grant) => {
                // The decision is used up even if a rule denies the call, so that a denial stays final.
                if grant.is_some_and(|(grant, _)| grant.given.is_none()) {
                    self.calls.lock().insert(call.id);
                }
                refuse(Denial::Policy, ruling.reason)
            }
            (Permission::Auto, None) => PermitState::Allow,
            (Permission::Confirm, None) => ask(ruling.reason),
            (_, Some((grant, shown))) if grant.given.is_some() => self.resume(shown, &grant),
            (_, Some((grant, shown))) if grant.digest != shown => {
                ask("the call or its tool changed after approval was requested".to_owned())
            }
            (_, Some((grant, _))) => self.redeem(call.id, &grant),
        }
    }

    /// Creates the input request of a running call.
    pub(crate) fn ask_input(&self, call: &ToolCall, entry: &Entry, cx: &CallContext, needed: InputNeeded) -> ApprovalRequest {
        let policy = self.policy.read().clone();
        let mut request = ApprovalRequest::about_input(call.clone(), entry.source(), entry.spec(), cx.caller().clone(), needed);
        request.expires_at = policy.expires(request.asked_at);
        request
    }

    /// Resumes a call that requested input, once per request. Permission was decided when the call started; the tool handles the person's
    /// response, including a denial.
    fn resume(&self, shown: Digest, grant: &Grant) -> PermitState {
        let state = grant.given.as_ref().map_or(&Value::Null, |given| &given.state);
        if grant.digest != input_digest(shown, state) {
            return refuse(Denial::Policy, "the call or its tool changed after its input was requested");
        }
        if self.inputs.lock().insert(grant.approval_id) {
            PermitState::Allow
        } else {
            refuse(Denial::Policy, "this request was already decided; a decision is valid once")
        }
    }

    /// Uses up the decision about a call. A denial is also used up, so that a denied call cannot be approved later.
    fn redeem(&self, call: CallId, grant: &Grant) -> PermitState {
        let first = self.calls.lock().insert(call);
        let reason = grant.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match grant.verdict {
            Verdict::Deny => refuse(Denial::Denied, format!("the user denied the call{reason}")),
            Verdict::Expired => refuse(Denial::Expired, "the approval request expired"),
            Verdict::Approve if first => PermitState::Allow,
            Verdict::Approve => refuse(Denial::Policy, "this request was already decided; a decision is valid once"),
        }
    }
}

fn refuse(denial: Denial, reason: impl Into<String>) -> PermitState {
    PermitState::Refuse(ToolError::denied(denial, reason))
}

/// Returns the error message for a queued call that needs approval, with the command that approves it.
fn unapproved(call: CallId, reason: &str) -> String {
    format!("the call now needs a person's approval and has none: {reason}. `helve tasks retry {call}` approves and repeats the call")
}

/// Returns the properties of a call that rules can match.
fn subject<'a>(member: &'a Member, agent: Option<&'a str>, call: &'a ToolCall) -> Subject<'a> {
    let entry = &member.entry;
    Subject {
        tool: entry.name(),
        model_name: entry.model_name(),
        source: entry.source().as_str(),
        sets: &member.sets,
        agent,
        arguments: &call.arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_once_also_when_it_is_forgotten() {
        let mut used = UsedIds::default();
        let calls: Vec<_> = (0..REMEMBERED + 10).map(|_| CallId::mint()).collect::<BTreeSet<_>>().into_iter().collect();
        assert!(calls.iter().all(|call| used.insert(*call)));
        assert!(!calls.iter().any(|call| used.insert(*call)));
        assert_eq!(used.ids.len(), REMEMBERED);
    }
}
