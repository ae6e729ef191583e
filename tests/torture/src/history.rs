//! The checker: what clients were told, what tools did, and what is in the record at the end must fit together.
//!
//! It knows nothing of stores or processes, so that histories which must not happen can be written by hand.

use std::collections::{BTreeMap, BTreeSet};

use helve_core::store::{ApprovalState, MAX_ATTEMPTS};
use helve_core::{ApprovalId, CallId, RunId};
use serde::{Deserialize, Serialize};

/// Something that a client was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// A call was taken into the queue.
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
        /// What came of it.
        result: String,
    },
    /// Someone looked, and the call had this result.
    Seen {
        /// The call.
        call: CallId,
        /// What came of it.
        result: String,
    },
    /// A person was asked.
    Asked {
        /// The request.
        approval: ApprovalId,
        /// What it is about.
        call: CallId,
    },
    /// A person's answer counts.
    Won {
        /// The request.
        approval: ApprovalId,
        /// Yes or no.
        approve: bool,
        /// Who answered.
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

/// A call in the record at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct LastTask {
    /// Whether it may run more than once.
    pub idempotent: bool,
    /// What came of it; nothing where it is not over.
    pub result: Option<String>,
    /// Whether that is a success.
    pub success: bool,
}

/// A request in the record at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct LastApproval {
    /// What it is about.
    pub call: CallId,
    /// How far it is.
    pub state: ApprovalState,
    /// Who answered.
    pub by: Option<String>,
}

/// What is in the record at the end.
#[derive(Debug, Clone, Default)]
pub struct Last {
    /// All tasks.
    pub tasks: BTreeMap<CallId, LastTask>,
    /// All requests.
    pub approvals: BTreeMap<ApprovalId, LastApproval>,
    /// The events of all runs, in their order.
    pub events: BTreeMap<RunId, Vec<(u64, String)>>,
    /// The calls whose end a run was told, once for each time.
    pub finished: Vec<CallId>,
}

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// A call was accepted or approved, and is not in the record.
    Lost(CallId),
    /// A call in the record has no result.
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
    /// A request that was shown is not in the record.
    LostQuestion(ApprovalId),
    /// Two answers were told that they count.
    AnsweredTwice(ApprovalId),
    /// The answer that was told that it counts is not the one in the record.
    OtherAnswer(ApprovalId),
    /// A call ran that a person denied, or that nobody answered.
    DeniedRan(CallId),
    /// A subscriber, or the record itself, has another number of an event than the next one.
    Misnumbered {
        /// The run.
        run: RunId,
        /// The number that comes next.
        expected: u64,
        /// The number that came.
        got: u64,
    },
    /// A subscriber was told another event than the one in the record, or one that is not there.
    OtherEvent(RunId, u64),
}

/// Everything in a history that must not happen.
#[must_use]
pub fn check(told: &[Told], ran: &[CallId], last: &Last) -> Vec<Violation> {
    let mut wrong = Vec::new();
    results(told, last, &mut wrong);
    runs_of_tools(told, ran, last, &mut wrong);
    requests(told, ran, last, &mut wrong);
    events(told, last, &mut wrong);
    wrong
}

/// Every accepted call has exactly one result, and none that was reported disappears or changes.
fn results(told: &[Told], last: &Last, wrong: &mut Vec<Violation>) {
    let (mut recorded, mut finished) = (BTreeSet::new(), BTreeSet::new());
    for told in told {
        match told {
            Told::Accepted { call, .. } if !last.tasks.contains_key(call) => wrong.push(Violation::Lost(*call)),
            Told::Recorded { call, .. } if !recorded.insert(call) => wrong.push(Violation::Doubled(*call)),
            _ => {}
        }
        if let Told::Recorded { call, result } | Told::Seen { call, result } = told {
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
fn runs_of_tools(told: &[Told], ran: &[CallId], last: &Last, wrong: &mut Vec<Violation>) {
    let mut counts: BTreeMap<CallId, u32> = BTreeMap::new();
    for call in ran {
        *counts.entry(*call).or_default() += 1;
    }
    let mut may_repeat: BTreeMap<CallId, bool> = last.tasks.iter().map(|(call, task)| (*call, task.idempotent)).collect();
    may_repeat.extend(told.iter().filter_map(|told| match told {
        Told::Accepted { call, idempotent } => Some((*call, *idempotent)),
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
fn requests(told: &[Told], ran: &[CallId], last: &Last, wrong: &mut Vec<Violation>) {
    let mut won = BTreeSet::new();
    for told in told {
        match told {
            Told::Asked { approval, .. } if !last.approvals.contains_key(approval) => wrong.push(Violation::LostQuestion(*approval)),
            Told::Won { approval, approve, by } => {
                if !won.insert(approval) {
                    wrong.push(Violation::AnsweredTwice(*approval));
                }
                let state = if *approve { ApprovalState::Approved } else { ApprovalState::Denied };
                let fits = |now: &LastApproval| now.state == state && now.by.as_ref() == Some(by);
                if !last.approvals.get(approval).is_some_and(fits) {
                    wrong.push(Violation::OtherAnswer(*approval));
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

/// The numbers of each run's events are 1..n, in the record and for a subscriber that came back again and again.
fn events(told: &[Told], last: &Last, wrong: &mut Vec<Violation>) {
    let mut seen: BTreeMap<RunId, u64> = BTreeMap::new();
    for told in told {
        let Told::Event { run, seq, what } = told else { continue };
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
