//! Whether a call may run: at once, after a person agrees, or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use helve_core::{
    ApprovalId, ApprovalRequest, CallContext, CallId, Caller, Denial, Digest, Grant, InputNeeded, Permission, Policy, Subject, ToolCall,
    ToolError, Verdict, input_digest,
};
use parking_lot::{Mutex, RwLock};

use serde_json::Value;

use crate::catalogue::Entry;
use crate::toolkit::{Member, Toolkit};

/// Answers that are remembered. Across restarts that is the business of whoever stores the requests.
const REMEMBERED: usize = 65_536;

/// Stands for whoever put a call in the queue that neither an agent nor a person stands behind.
const UNKNOWN_AGENT: &str = "(unknown)";

/// What is decided about one call.
pub(crate) enum PermitState {
    Allow,
    Refuse(ToolError),
    Ask(Box<ApprovalRequest>),
}

/// Decides by the tool's wish, the operator's rules, what the agent tightens, and a person's answer.
pub(crate) struct Permit {
    policy: RwLock<Arc<Policy>>,
    used: Mutex<Used<CallId>>,
    /// Questions of tools that were answered.
    heard: Mutex<Used<ApprovalId>>,
}

/// What was answered: calls, or requests. Ids are in the order of time: of those older than all that are remembered
/// nobody can say whether they were answered, so they count as if.
struct Used<I> {
    ids: BTreeSet<I>,
    forgotten: Option<I>,
}

impl<I> Default for Used<I> {
    fn default() -> Self {
        Self { ids: BTreeSet::new(), forgotten: None }
    }
}

impl<I: Ord + Copy> Used<I> {
    /// Takes note of one; says whether it is the first time.
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
        Self { policy: RwLock::new(Arc::new(policy)), used: Mutex::default(), heard: Mutex::default() }
    }

    /// Lets other rules hold from now on.
    pub(crate) fn replace(&self, policy: Policy) {
        *self.policy.write() = Arc::new(policy);
    }

    /// What holds for a call without arguments by a person.
    pub(crate) fn usual(&self, entry: &Entry) -> Permission {
        let policy = self.policy.read().clone();
        let (source, arguments) = (entry.source().as_str(), &Value::Null);
        let subject = Subject { tool: entry.name(), model_name: entry.model_name(), source, sets: &[], agent: None, arguments };
        policy.decide(entry.spec().rules().permission, &subject).permission
    }

    /// Whether rules let a call run that was accepted before, under the consent of a person or without. They may have changed since:
    /// a folder is not trusted any more, for one.
    pub(crate) fn check(&self, member: &Member, agent: Option<&str>, call: &ToolCall, consent: bool) -> Result<(), ToolError> {
        // Only a person calls without being an agent, and a person's call carries their consent.
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

    /// Decides about a call. A grant comes with the digest of the call that it must be for.
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
            let mut request = ApprovalRequest::new(call.clone(), entry.source(), entry.spec(), caller(toolkit, cx), reason);
            request.expires_at = policy.expires(request.asked_at);
            PermitState::Ask(Box::new(request))
        };
        match (ruling.permission, grant) {
            (Permission::Deny, grant) => {
                // An answer is used up also where a rule denies the call: a no that was said stays said.
                if grant.is_some_and(|(grant, _)| grant.given.is_none()) {
                    self.used.lock().insert(call.id);
                }
                PermitState::Refuse(ToolError::denied(Denial::Policy, ruling.reason))
            }
            (Permission::Auto, None) => PermitState::Allow,
            (Permission::Confirm, None) => ask(ruling.reason),
            (_, Some((grant, shown))) if grant.given.is_some() => self.go_on(shown, &grant),
            (_, Some((grant, shown))) if grant.digest != shown => {
                ask("the call or its tool changed after the request was asked".to_owned())
            }
            (_, Some((grant, _))) => self.redeem(call.id, &grant),
        }
    }

    /// The request what a call needs to know that has begun already.
    pub(crate) fn ask_input(&self, call: &ToolCall, entry: &Entry, cx: &CallContext, needed: InputNeeded) -> ApprovalRequest {
        let policy = self.policy.read().clone();
        let mut request = ApprovalRequest::about_input(call.clone(), entry.source(), entry.spec(), cx.caller().clone(), needed);
        request.expires_at = policy.expires(request.asked_at);
        request
    }

    /// Lets a call go on that asked for something, once for each request. That it may run was decided when it began; what a person
    /// answered, also a no, is for the tool to hear.
    fn go_on(&self, shown: Digest, grant: &Grant) -> PermitState {
        let state = grant.given.as_ref().map_or(&Value::Null, |given| &given.state);
        if grant.digest != input_digest(shown, state) {
            return PermitState::Refuse(ToolError::denied(Denial::Policy, "the call or its tool changed after the request was asked"));
        }
        if self.heard.lock().insert(grant.approval_id) {
            PermitState::Allow
        } else {
            PermitState::Refuse(ToolError::denied(Denial::Policy, "the request was answered before, and counts once"))
        }
    }

    /// Lets one answer count for a call. A denial is used up too, so that nobody can approve what was denied.
    fn redeem(&self, call: CallId, grant: &Grant) -> PermitState {
        let first = self.used.lock().insert(call);
        let said = grant.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match grant.verdict {
            Verdict::Deny => PermitState::Refuse(ToolError::denied(Denial::Denied, format!("the user said no{said}"))),
            Verdict::Expired => PermitState::Refuse(ToolError::denied(Denial::Expired, "the approval request expired before a decision")),
            Verdict::Approve if first => PermitState::Allow,
            Verdict::Approve => PermitState::Refuse(ToolError::denied(Denial::Policy, "the request was answered before, and counts once")),
        }
    }
}

/// Why a queued call did not run, and how a person can let it run.
fn unapproved(call: CallId, reason: &str) -> String {
    format!("the call needs a person's approval by now, and has none: {reason}. `helve tasks retry {call}` approves and repeats it")
}

/// On whose behalf a call is made. The agent whose toolkit it is counts more than what the caller says.
fn caller(toolkit: &Toolkit, cx: &CallContext) -> Caller {
    match toolkit.agent() {
        Some(agent) => cx.caller().clone().agent(agent.clone()),
        None => cx.caller().clone(),
    }
}

/// What rules look at.
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
        let mut used = Used::default();
        let calls: Vec<_> = (0..REMEMBERED + 10).map(|_| CallId::mint()).collect::<BTreeSet<_>>().into_iter().collect();
        assert!(calls.iter().all(|call| used.insert(*call)));
        assert!(!calls.iter().any(|call| used.insert(*call)));
        assert_eq!(used.ids.len(), REMEMBERED);
    }
}
