//! Operations by chance, and what they are about: chosen from what there is, now and then from what there is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Approval, Consent, DecisionRecord, NewRun, NewTask, Progress, RunCommit, RunState, TaskFilter, TaskState};
use helve_core::{
    ApprovalId, ApprovalRequest, CallId, Caller, ConversationId, Digest, EventData, HolderId, Message, MessageBody, Part, Rules, RunId,
    Schema, Timestamp, ToolCall, ToolSpec, Verdict,
};
use proptest::prelude::*;
use serde_json::json;

use crate::side::Side;

/// What is done; numbers choose what it is about.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    Accept(u8, u8),
    AcceptAgain(u8),
    Claim(u8, u8),
    Finish(u8, u8),
    Keep(u8, u8),
    Leave(u8),
    Recover,
    CancelTask(u8),
    RetryTask(u8),
    Hear(u8),
    Ask(u8),
    AskAgain(u8),
    Answer(u8, u8),
    Begin(u8, u8),
    Commit(u8, u8, u8),
    TakeRun(u8, u8),
    ReleaseRun(u8, u8, bool),
    CancelRun(u8),
    PutBody(u8),
    Prune(u8),
    Read(u8, u8),
    Restart,
}

pub fn any() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let (a, b, c) = (proptest::num::u8::ANY, proptest::num::u8::ANY, proptest::num::u8::ANY);
    prop_oneof![
        8 => (a, b).prop_map(|(a, b)| Accept(a, b)),
        1 => a.prop_map(AcceptAgain),
        8 => (a, b).prop_map(|(a, b)| Claim(a, b)),
        10 => (a, b).prop_map(|(a, b)| Finish(a, b)),
        2 => (a, b).prop_map(|(a, b)| Keep(a, b)),
        1 => a.prop_map(Leave),
        2 => Just(Recover),
        3 => a.prop_map(CancelTask),
        3 => a.prop_map(RetryTask),
        1 => a.prop_map(Hear),
        3 => a.prop_map(Ask),
        1 => a.prop_map(AskAgain),
        5 => (a, b).prop_map(|(a, b)| Answer(a, b)),
        4 => (a, b).prop_map(|(a, b)| Begin(a, b)),
        8 => (a, b, c).prop_map(|(a, b, c)| Commit(a, b, c)),
        3 => (a, b).prop_map(|(a, b)| TakeRun(a, b)),
        2 => (a, b, c).prop_map(|(a, b, c)| ReleaseRun(a, b, c % 4 == 0)),
        1 => a.prop_map(CancelRun),
        1 => a.prop_map(PutBody),
        1 => a.prop_map(Prune),
        6 => (a, b).prop_map(|(a, b)| Read(a, b)),
        1 => Just(Restart),
    ]
}

/// A task by its place in the order of tasks, because a copy has another id on each side.
pub type Place = usize;

/// An operation with everything that it is about.
#[derive(Debug, Clone)]
pub enum Step {
    Accept(NewTask),
    Claim {
        holder: HolderId,
        alive: bool,
        limit: usize,
        tools: Option<Vec<Digest>>,
    },
    Finish {
        task: Place,
        stale: bool,
        end: u8,
    },
    Keep {
        holder: HolderId,
        progress: Vec<(Place, Progress)>,
    },
    Leave(HolderId),
    Recover(HolderId),
    CancelTask(Place),
    RetryTask(Place),
    Hear(Place),
    Ask(Box<Approval>),
    Answer(ApprovalId, DecisionRecord),
    Commit {
        commit: RunCommit,
        stale: bool,
        heard: Vec<Place>,
    },
    TakeRun(RunId, HolderId),
    /// With the epoch that the run has, or with another one.
    ReleaseRun(RunId, HolderId, bool),
    CancelRun(RunId),
    PutBody(Vec<u8>),
    Prune(Duration),
    Task(Place),
    Tasks(TaskFilter),
    Inbox(ConversationId),
    Approval(ApprovalId),
    Approvals(Option<RunId>, bool, usize),
    Run(RunId),
    Runs(Option<RunState>, usize),
    Events(RunId, u64, usize),
    Conversation(ConversationId),
    Conversations(usize),
    Body(Digest),
}

/// What operations are about.
pub struct Pools {
    holders: Vec<HolderId>,
    accepted: Vec<NewTask>,
    tasks: usize,
    approvals: Vec<Approval>,
    runs: Vec<RunId>,
    conversations: Vec<ConversationId>,
    bodies: Vec<Vec<u8>>,
}

fn pick<T: Clone>(from: &[T], number: u8) -> Option<T> {
    (!from.is_empty()).then(|| from[usize::from(number) % from.len()].clone())
}

fn tool(number: u8) -> &'static str {
    ["a", "b"][usize::from(number % 2)]
}

fn definition(tool: &str) -> Digest {
    Digest::of([tool.as_bytes()])
}

/// Some calls are a person's, some are approved, and some are neither.
fn consent(number: u8, call: &ToolCall, definition: Digest) -> Option<Consent> {
    match number % 3 {
        0 => None,
        1 => Some(Consent::of_caller(call, definition)),
        _ => Some(Consent::of_approval(ApprovalId::mint(), call, definition)),
    }
}

fn said(text: &str) -> Arc<Message> {
    Arc::new(Message::new(MessageBody::User { parts: vec![Part::Text { text: text.into() }] }))
}

fn commit(run: RunId, begin: Option<NewRun>, state: RunState) -> RunCommit {
    RunCommit { begin, snapshot: (!state.is_over()).then(|| json!({"state": state.name()})), ..RunCommit::new(run, 1, state) }
}

impl Pools {
    pub fn new() -> Self {
        let holders = (0..3).map(|_| HolderId::mint()).collect();
        let conversations = (0..3).map(|_| ConversationId::mint()).collect();
        Self { holders, accepted: Vec::new(), tasks: 0, approvals: Vec::new(), runs: Vec::new(), conversations, bodies: Vec::new() }
    }

    /// All processes that there were; there are others now.
    pub fn replace_holders(&mut self) -> Vec<HolderId> {
        let others = (0..3).map(|_| HolderId::mint()).collect();
        std::mem::replace(&mut self.holders, others)
    }

    /// How many tasks there are by now.
    pub fn learn(&mut self, side: &Side) {
        self.tasks = side.tasks();
    }

    fn holder(&self, number: u8) -> HolderId {
        self.holders[usize::from(number) % self.holders.len()]
    }

    /// One of the tasks, or one place behind, where none is.
    fn place(&self, number: u8) -> Place {
        usize::from(number) % (self.tasks + 1)
    }

    fn run(&self, number: u8) -> RunId {
        if number == 0 { RunId::mint() } else { pick(&self.runs, number).unwrap_or_else(RunId::mint) }
    }

    fn conversation(&self, number: u8) -> ConversationId {
        self.conversations[usize::from(number) % self.conversations.len()]
    }

    fn caller(&self, number: u8) -> Caller {
        let run = if number.is_multiple_of(2) { pick(&self.runs, number / 2) } else { None };
        Caller::default().run(run).conversation(self.conversation(number / 4))
    }

    fn request(&mut self, caller: Caller, number: u8) -> Approval {
        let spec = ToolSpec::new("wipe", "Wipes.", Schema::any_object()).expect("a spec");
        let call = ToolCall::new("wipe", json!({"disk": number}));
        let mut request = ApprovalRequest::new(call, &"here".into(), &spec, caller, "because".into());
        request.expires_at = number.is_multiple_of(5).then_some(Timestamp::UNIX_EPOCH);
        let approval = Approval::new(request, definition("wipe"), &Rules::default().idempotent(number.is_multiple_of(2)));
        self.approvals.push(approval.clone());
        approval
    }

    pub fn step(&mut self, operation: Operation) -> Step {
        match operation {
            Operation::Accept(a, b) => self.accept(a, b),
            Operation::AcceptAgain(a) => match pick(&self.accepted, a) {
                Some(task) => Step::Accept(task),
                None => self.accept(a, a),
            },
            Operation::Claim(a, b) => {
                let tools = b.is_multiple_of(3).then(|| vec![definition(tool(b))]);
                Step::Claim { holder: self.holder(a), alive: !b.is_multiple_of(5), limit: usize::from(b % 4), tools }
            }
            Operation::Finish(a, b) => Step::Finish { task: self.place(a), stale: b.is_multiple_of(11), end: b },
            Operation::Keep(a, b) => {
                let progress = Progress { fraction: Some(0.5), message: format!("step {b}") };
                Step::Keep { holder: self.holder(a), progress: vec![(self.place(b), progress)] }
            }
            Operation::Leave(a) => {
                let place = usize::from(a) % self.holders.len();
                Step::Leave(std::mem::replace(&mut self.holders[place], HolderId::mint()))
            }
            Operation::Recover | Operation::Restart => Step::Recover(self.holders[0]),
            Operation::CancelTask(a) => Step::CancelTask(self.place(a)),
            Operation::RetryTask(a) => Step::RetryTask(self.place(a)),
            Operation::Hear(a) => Step::Hear(self.place(a)),
            Operation::Ask(a) => {
                let conversation = Some(self.conversation(a));
                Step::Ask(Box::new(self.request(Caller::default().conversation(conversation), a)))
            }
            Operation::AskAgain(a) => match pick(&self.approvals, a) {
                Some(approval) => Step::Ask(Box::new(approval)),
                None => Step::Ask(Box::new(self.request(Caller::default(), a))),
            },
            Operation::Answer(a, b) => {
                let id = pick(&self.approvals, a).map_or_else(ApprovalId::mint, |approval| approval.request.id);
                let verdict = if b.is_multiple_of(2) { Verdict::Approve } else { Verdict::Deny };
                let arguments = b.is_multiple_of(7).then(|| json!({"disk": "other"}));
                Step::Answer(
                    id,
                    DecisionRecord {
                        verdict,
                        by: format!("person {}", b % 3).into(),
                        reason: None,
                        always: b.is_multiple_of(3),
                        arguments,
                    },
                )
            }
            Operation::Begin(a, b) => self.begin(a, b),
            Operation::Commit(a, b, c) => self.commit(a, b, c),
            Operation::TakeRun(a, b) => Step::TakeRun(self.run(a), self.holder(b)),
            Operation::ReleaseRun(a, b, stale) => Step::ReleaseRun(self.run(a), self.holder(b), stale),
            Operation::CancelRun(a) => Step::CancelRun(self.run(a)),
            Operation::PutBody(a) => {
                self.bodies.push(vec![a; usize::from(a)]);
                Step::PutBody(vec![a; usize::from(a)])
            }
            Operation::Prune(a) => Step::Prune(if a.is_multiple_of(2) { Duration::ZERO } else { Duration::from_hours(1) }),
            Operation::Read(a, b) => self.read(a, b),
        }
    }

    fn accept(&mut self, a: u8, b: u8) -> Step {
        // Every so often a row is too large for its table.
        let text = if a.is_multiple_of(29) { "x".repeat(100_000) } else { a.to_string() };
        let call = ToolCall::new(tool(a), json!({"text": text}));
        let task = NewTask {
            tool: tool(a).into(),
            definition: definition(tool(a)),
            caller: self.caller(b),
            sets: if a.is_multiple_of(5) { Arc::from(["web".into()]) } else { Arc::default() },
            consent: consent(a, &call, definition(tool(a))),
            call,
            idempotent: !a.is_multiple_of(3),
            priority: i8::try_from(b % 3).unwrap_or_default() - 1,
            delay: if b.is_multiple_of(13) { Duration::from_hours(1) } else { Duration::ZERO },
            max_attempts: u32::from(b % 4),
        };
        self.accepted.push(task.clone());
        Step::Accept(task)
    }

    fn begin(&mut self, a: u8, b: u8) -> Step {
        let id = if b.is_multiple_of(11) { self.run(b) } else { RunId::mint() };
        if !self.runs.contains(&id) {
            self.runs.push(id);
        }
        let begin = NewRun {
            id,
            conversation: self.conversation(a),
            parent: pick(&self.runs, b).filter(|_| b.is_multiple_of(3)),
            agent: Some("ada".into()),
            model: "scripted".into(),
            input: "hello".into(),
            holder: self.holder(b),
        };
        let messages = if b.is_multiple_of(2) { vec![said("hello")] } else { Vec::new() };
        let events = vec![(Timestamp::now(), EventData::Notification { message: "begun".to_owned() })];
        let commit = RunCommit { messages, events, ..commit(id, Some(begin), RunState::Running) };
        Step::Commit { commit, stale: false, heard: Vec::new() }
    }

    fn commit(&mut self, a: u8, b: u8, c: u8) -> Step {
        use RunState::{Cancelled, Done, Failed, Ready, Running, Waiting};
        let run = self.run(a);
        let state = [Running, Waiting, Running, Ready, Waiting, Done, Failed, Cancelled][usize::from(b % 8)];
        let note = |number: u8| (Timestamp::now(), EventData::Notification { message: format!("note {number}") });
        let caller = Caller::default().run(run).conversation(self.conversation(a));
        let asked = (0..c % 3).map(|number| self.request(caller.clone(), c / 3 + number)).collect();
        let commit = RunCommit {
            events: (0..b % 4).map(note).collect(),
            messages: (0..c % 2).map(|_| said("more")).collect(),
            message_count: usize::from(c / 16),
            approvals: asked,
            allowed: BTreeSet::from([definition(tool(c))]),
            contexts: BTreeMap::from([("notes".to_owned(), json!(c))]),
            ..commit(run, None, state)
        };
        Step::Commit { commit, stale: c.is_multiple_of(13), heard: vec![self.place(c)] }
    }

    fn read(&self, a: u8, b: u8) -> Step {
        let limit = usize::from(b % 8);
        let approval = pick(&self.approvals, b).map_or_else(ApprovalId::mint, |approval| approval.request.id);
        match a % 11 {
            0 => Step::Task(self.place(b)),
            1 => Step::Tasks(
                TaskFilter::default()
                    .state(pick(&TaskState::ALL, b))
                    .conversation(self.conversation(b))
                    .unread(b.is_multiple_of(2))
                    .limit(limit),
            ),
            2 => Step::Inbox(self.conversation(b)),
            3 => Step::Approval(approval),
            4 => Step::Approvals(pick(&self.runs, b).filter(|_| b.is_multiple_of(2)), b.is_multiple_of(3), limit),
            5 => Step::Run(self.run(b)),
            6 => Step::Runs(b.is_multiple_of(2).then_some(RunState::Running), limit),
            7 => Step::Events(self.run(b), u64::from(b % 4), limit),
            8 => Step::Conversation(self.conversation(b)),
            9 => Step::Conversations(limit),
            _ => Step::Body(pick(&self.bodies, b).map_or_else(|| definition("none"), |body| Digest::of([&*body]))),
        }
    }

    /// Everything that can be read.
    pub fn reads(&self) -> Vec<Step> {
        const ALL: usize = usize::MAX;
        let mut steps = vec![
            Step::Tasks(TaskFilter::default().limit(ALL)),
            Step::Approvals(None, false, ALL),
            Step::Runs(None, ALL),
            Step::Conversations(ALL),
        ];
        steps.extend(self.runs.iter().map(|run| Step::Events(*run, 0, ALL)));
        steps.extend(self.conversations.iter().flat_map(|id| [Step::Conversation(*id), Step::Inbox(*id)]));
        steps.extend(self.bodies.iter().map(|body| Step::Body(Digest::of([&**body]))));
        steps
    }
}

/// A place behind the last task is that of a task which is not there.
pub fn missing() -> CallId {
    CallId::mint()
}
