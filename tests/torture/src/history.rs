//! The checker: what clients were told, what tools did, and what is in the store at the end must be consistent.
//!
//! It knows nothing of stores or processes, so that histories which must not happen can be written by hand.

use std::collections::{BTreeMap, BTreeSet};

use helve_core::store::{ApprovalState, MAX_ATTEMPTS};
use helve_core::{ApprovalId, CallId, RunId};
use serde::{Deserialize, Serialize};

/// Something that a client observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    /// A call was accepted into the queue.
    Accepted {
        /// The call.
        call: CallId,
        /// Whether it may run more than once.
        idempotent: bool,
    },
    /// A worker's result counts.
    Recorded {
        /// The call.
        call: CallId,
        /// The result.
        result: String,
    },
    /// A client read this result of the call.
    Seen {
        /// The call.
        call: CallId,
        /// The result.
        result: String,
    },
    /// An approval was requested.
    Asked {
        /// The request.
        approval: ApprovalId,
        /// What it is about.
        call: CallId,
    },
    /// A decision counts.
    Won {
        /// The request.
        approval: ApprovalId,
        /// Yes or no.
        approve: bool,
        /// Who decided.
        by: String,
    },
    /// A subscriber got an event.
    Event {
        /// The run.
        run: RunId,
        /// Its number.
        seq: u64,
        /// What happened, in short.
        what: String,
    },
}

/// A call in the store at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalTask {
    /// Whether it may run more than once.
    pub idempotent: bool,
    /// Its result; `None` if it has not ended.
    pub result: Option<String>,
    /// Whether that is a success.
    pub success: bool,
}

/// A request in the store at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalApproval {
    /// What it is about.
    pub call: CallId,
    /// How far it is.
    pub state: ApprovalState,
    /// Who decided.
    pub by: Option<String>,
}

/// What is in the store at the end.
#[derive(Debug, Clone, Default)]
pub struct FinalState {
    /// All tasks.
    pub tasks: BTreeMap<CallId, FinalTask>,
    /// All requests.
    pub approvals: BTreeMap<ApprovalId, FinalApproval>,
    /// The events of all runs, in their order.
    pub events: BTreeMap<RunId, Vec<(u64, String)>>,
    /// The calls whose end a run was notified of, once for each time.
    pub finished: Vec<CallId>,
}

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// A call was accepted or approved, and is not in the store.
    Lost(CallId),
    /// A call in the store has no result.
    Unfinished(CallId),
    /// A call has more than one result.
    Doubled(CallId),
    /// A result that was reported is another one now.
    Changed {
        /// The call.
        call: CallId,
        /// What was reported.
        told: String,
        /// What it is now.
        now: Option<String>,
    },
    /// A call ran more often than it may.
    RanTooOften(CallId, u32),
    /// A call ended well, and its tool never ran.
    Invented(CallId),
    /// A request that was shown is not in the store.
    LostApproval(ApprovalId),
    /// Two decisions were accepted.
    DecidedTwice(ApprovalId),
    /// The decision that was accepted is not the one in the store.
    OtherDecision(ApprovalId),
    /// A call ran without an approval.
    DeniedRan(CallId),
    /// A subscriber, or the store itself, has another number of an event than the next one.
    Misnumbered {
        /// The run.
        run: RunId,
        /// The number that comes next.
        expected: u64,
        /// The number that came.
        got: u64,
    },
    /// A subscriber received another event than the one in the store, or one that is not there.
    OtherEvent(RunId, u64),
}

/// Returns everything in a history that must not happen.
#[must_use]
pub fn check(told: &[Observation], ran: &[CallId], last: &FinalState) -> Vec<Violation> {
    let mut wrong = Vec::new();
    results(told, last, &mut wrong);
    runs_of_tools(told, ran, last, &mut wrong);
    requests(told, ran, last, &mut wrong);
    events(told, last, &mut wrong);
    wrong
}

/// Every accepted call has exactly one result, and none that was reported disappears or changes.
fn results(told: &[Observation], last: &FinalState, wrong: &mut Vec<Violation>) {
    let (mut recorded, mut finished) = (BTreeSet::new(), BTreeSet::new());
    for told in told {
        match told {
            Observation::Accepted { call, .. } if !last.tasks.contains_key(call) => wrong.push(Violation::Lost(*call)),
            Observation::Recorded { call, .. } if !recorded.insert(call) => wrong.push(Violation::Doubled(*call)),
            _ => {}
        }
        if let Observation::Recorded { call, result } | Observation::Seen { call, result } = told {
            let now = last.tasks.get(call).and_then(|task| task.result.clone());
            if now.as_ref() != Some(result) {
                wrong.push(Violation::Changed { call: *call, told: result.clone(), now });
            }
        }
    }
    wrong.extend(last.tasks.iter().filter(|(_, task)| task.result.is_none()).map(|(call, _)| Violation::Unfinished(*call)));
    wrong.extend(last.finished.iter().filter(|call| !finished.insert(**call)).map(|call| Violation::Doubled(*call)));
}

/// No call runs more often than it may.
fn runs_of_tools(told: &[Observation], ran: &[CallId], last: &FinalState, wrong: &mut Vec<Violation>) {
    let mut counts: BTreeMap<CallId, u32> = BTreeMap::new();
    for call in ran {
        *counts.entry(*call).or_default() += 1;
    }
    let mut may_repeat: BTreeMap<CallId, bool> = last.tasks.iter().map(|(call, task)| (*call, task.idempotent)).collect();
    may_repeat.extend(told.iter().filter_map(|told| match told {
        Observation::Accepted { call, idempotent } => Some((*call, *idempotent)),
        _ => None,
    }));
    for (call, count) in &counts {
        let most = if may_repeat.get(call).copied().unwrap_or(false) { MAX_ATTEMPTS } else { 1 };
        if *count > most {
            wrong.push(Violation::RanTooOften(*call, *count));
        }
    }
    let invented = last.tasks.iter().filter(|(call, task)| task.success && !counts.contains_key(call));
    wrong.extend(invented.map(|(call, _)| Violation::Invented(*call)));
}

/// Every request that was shown is there, has at most one answer, and that one took effect.
fn requests(told: &[Observation], ran: &[CallId], last: &FinalState, wrong: &mut Vec<Violation>) {
    let mut won = BTreeSet::new();
    for told in told {
        match told {
            Observation::Asked { approval, .. } if !last.approvals.contains_key(approval) => wrong.push(Violation::LostApproval(*approval)),
            Observation::Won { approval, approve, by } => {
                if !won.insert(approval) {
                    wrong.push(Violation::DecidedTwice(*approval));
                }
                let state = if *approve { ApprovalState::Approved } else { ApprovalState::Denied };
                let fits = |now: &FinalApproval| now.state == state && now.by.as_ref() == Some(by);
                if !last.approvals.get(approval).is_some_and(fits) {
                    wrong.push(Violation::OtherDecision(*approval));
                }
            }
            _ => {}
        }
    }
    let ran: BTreeSet<_> = ran.iter().collect();
    for approval in last.approvals.values() {
        let approved = approval.state == ApprovalState::Approved;
        if approved && !last.tasks.contains_key(&approval.call) {
            wrong.push(Violation::Lost(approval.call));
        }
        if !approved && ran.contains(&approval.call) {
            wrong.push(Violation::DeniedRan(approval.call));
        }
    }
}

/// The numbers of each run's events are 1..n, in the store and for a subscriber that came back again and again.
fn events(told: &[Observation], last: &FinalState, wrong: &mut Vec<Violation>) {
    let mut seen: BTreeMap<RunId, u64> = BTreeMap::new();
    for told in told {
        let Observation::Event { run, seq, what } = told else { continue };
        let before = seen.entry(*run).or_default();
        number(*run, before, *seq, wrong);
        let there = last.events.get(run).is_some_and(|events| events.iter().any(|(number, now)| number == seq && now == what));
        if !there {
            wrong.push(Violation::OtherEvent(*run, *seq));
        }
    }
    for (run, events) in &last.events {
        let mut before = 0;
        for (seq, _) in events {
            number(*run, &mut before, *seq, wrong);
        }
    }
}

fn number(run: RunId, before: &mut u64, got: u64, wrong: &mut Vec<Violation>) {
    let expected = *before + 1;
    if got != expected {
        wrong.push(Violation::Misnumbered { run, expected, got });
    }
    *before = got;
}

#[cfg(test)]
mod tests;
