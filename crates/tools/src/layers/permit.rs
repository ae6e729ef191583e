//! Whether a call may run: at once, after a person agrees, or not at all.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use helve_core::{
    ApprovalId, CallContext, Decision, Denial, Grant, Permission, Policy, Question, Subject, ToolCall, ToolError, call_digest,
};

use crate::toolkit::{Member, Toolkit};

/// Answers that are remembered. Across restarts that is the business of whoever stores the questions.
const REMEMBERED: usize = 65_536;

/// What is decided about one call.
pub(crate) enum Verdict {
    Allow,
    Refuse(ToolError),
    Ask(Box<Question>),
}

/// Decides by the tool's wish, the operator's rules, what the agent tightens, and a person's answer.
pub(crate) struct Permit {
    policy: RwLock<Arc<Policy>>,
    used: Mutex<BTreeSet<ApprovalId>>,
}

impl Permit {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy: RwLock::new(Arc::new(policy)), used: Mutex::default() }
    }

    /// Lets other rules hold from now on.
    pub(crate) fn replace(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    pub(crate) fn decide(&self, toolkit: &Toolkit, member: &Member, call: &ToolCall, cx: &CallContext, grant: Option<Grant>) -> Verdict {
        let entry = &member.entry;
        let agent = toolkit.agent().or(cx.caller().agent.as_ref()).map(|agent| &**agent);
        let subject =
            Subject { tool: entry.name(), source: entry.source().as_str(), sets: &member.sets, agent, arguments: &call.arguments };
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut ruling = policy.decide(entry.spec().rules().permission, &subject);
        let restriction = toolkit.restriction(entry);
        if restriction > ruling.permission {
            ruling.permission = restriction;
            ruling.reason = format!("the agent's own rules say `{restriction}`");
        }
        let ask =
            |reason| Verdict::Ask(Box::new(Question::new(call.clone(), entry.name().clone(), entry.spec(), cx.caller().clone(), reason)));
        match (ruling.permission, grant) {
            (Permission::Deny, _) => Verdict::Refuse(ToolError::denied(Denial::Policy, ruling.reason)),
            (Permission::Auto, None) => Verdict::Allow,
            (Permission::Confirm, None) => ask(ruling.reason),
            (_, Some(grant)) if grant.digest != call_digest(call, entry.name(), entry.spec()) => {
                ask("the call or its tool changed after the question was asked".to_owned())
            }
            (_, Some(grant)) => self.redeem(grant),
        }
    }

    /// Lets an answer count once. A denial is used up too, so that nobody can approve what was denied.
    fn redeem(&self, grant: Grant) -> Verdict {
        let first = {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            // Ids are in the order of time, so the first is the oldest.
            if used.len() >= REMEMBERED {
                used.pop_first();
            }
            used.insert(grant.approval_id)
        };
        let said = grant.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        match grant.decision {
            Decision::Deny => Verdict::Refuse(ToolError::denied(Denial::Denied, format!("the user said no{said}"))),
            Decision::Expired => Verdict::Refuse(ToolError::denied(Denial::Expired, "nobody approved the call in time")),
            Decision::Approve if first => Verdict::Allow,
            Decision::Approve => Verdict::Refuse(ToolError::denied(Denial::Policy, "the question was answered before, and counts once")),
        }
    }
}
