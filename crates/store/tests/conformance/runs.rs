//! Runs, their events and their conversations.

use helve_core::store::{TaskEnd, TaskState};
use helve_core::{EventData, RunId, Store, StoreError};

use crate::scene::*;

pub async fn a_run_is_recorded_step_by_step(store: &dyn Store) {
    let run = started(store).await;
    let first = store.run(run.run).await.expect("readable").expect("a run");
    assert_eq!((first.state, first.seq, first.epoch, first.holder), (RunState::Running, 1, 1, Some(run.holder)));
    assert_eq!((first.agent.as_deref(), &*first.model, &*first.input), (Some("ada"), "scripted", "hello"));
    let commit = RunCommit {
        events: vec![note("two"), ended()],
        messages: vec![said("hi"), said("again")],
        message_count: 1,
        allowed: BTreeSet::from([definition("a")]),
        usage: Usage { input_tokens: 7, ..Usage::default() },
        contexts: BTreeMap::from([("notes".to_owned(), json!(["x"]))]),
        ..step(run.run, 1, RunState::Done)
    };
    assert_eq!(store.commit_run(commit).await.expect("recorded"), 1, "the number before");
    let last = store.run(run.run).await.expect("readable").expect("a run");
    assert_eq!((last.state, last.seq, last.holder), (RunState::Done, 3, None));
    let conversation = store.conversation(run.conversation).await.expect("readable").expect("a conversation");
    let texts: Vec<_> = conversation.messages.iter().map(|message| format!("{:?}", message.body())).collect();
    assert_eq!((texts.len(), conversation.message_count), (3, 3));
    assert!(texts[0].contains("hello") && texts[1].contains("hi") && texts[2].contains("again"), "{texts:?}");
    assert_eq!((conversation.usage.input_tokens, conversation.agent.as_deref()), (7, Some("ada")));
    assert_eq!((conversation.allowed.len(), &conversation.contexts["notes"]), (1, &json!(["x"])));
    assert!(matches!(store.commit_run(step(run.run, 1, RunState::Running)).await, Err(StoreError::Lost)), "it is over");
    let listed = store.runs(Some(RunState::Done), 10).await.expect("a list");
    assert_eq!(listed.iter().map(|run| run.id).collect::<Vec<_>>(), [run.run]);
    assert!(store.runs(Some(RunState::Waiting), 10).await.expect("a list").is_empty());
    assert_eq!(store.conversations(10).await.expect("a list").len(), 1);
}

pub async fn a_run_that_another_started_says_so_wherever_it_is_seen(store: &dyn Store) {
    let parent = started(store).await;
    let (run, holder, conversation) = (RunId::mint(), parent.holder, ConversationId::mint());
    let begin = NewRun { id: run, conversation, parent: Some(parent.run), agent: None, model: "none".into(), input: "help".into(), holder };
    let caller = Caller::default().run(run).conversation(conversation);
    let asked = crate::approvals::approval(caller.clone());
    let (request, events) = (asked.request.id, vec![note("begun")]);
    store
        .commit_run(RunCommit { begin: Some(begin), events, approvals: vec![asked], ..step(run, 1, RunState::Running) })
        .await
        .expect("begun");
    // Also what others add to it.
    accepted(store, NewTask { caller, ..task("a") }).await;
    let events = store.events(run, 0, 10).await.expect("events");
    assert_eq!(events.iter().map(|event| event.parent_run_id).collect::<Vec<_>>(), [Some(parent.run); 2]);
    assert_eq!(store.approval(request).await.expect("readable").expect("a request").parent_run, Some(parent.run));
    assert_eq!(store.run(run).await.expect("readable").expect("a run").parent_run_id, Some(parent.run));
}

pub async fn events_are_numbered_without_gaps_whoever_adds_them(store: &dyn Store) {
    let run = started(store).await;
    for round in 0..5 {
        let task = accepted(store, NewTask { caller: of_run(&run), ..task("a") }).await;
        let commit = RunCommit { events: vec![note("one"), note("two")], ..step(run.run, 1, RunState::Running) };
        assert_eq!(store.commit_run(commit).await.expect("recorded"), 2 + round * 4);
        let held = claim_one(store, run.holder).await;
        assert_eq!(held.id, task);
        finish(store, &held, TaskEnd::Over(good(&held))).await;
    }
    assert_eq!(seqs(store, run.run).await, (1..=21).collect::<Vec<u64>>());
    let late = store.events(run.run, 18, 2).await.expect("events");
    assert_eq!(late.iter().map(|event| event.seq).collect::<Vec<_>>(), [19, 20]);
    assert!(late.iter().all(|event| event.run_id == run.run && event.conversation_id == Some(run.conversation)));
    assert!(matches!(&late[0].data, EventData::Notification { message } if message == "one"));
}

pub async fn only_one_process_drives_a_run(store: &dyn Store) {
    let run = started(store).await;
    let other = process(store).await;
    assert!(matches!(store.take_run(run.run, other).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store.take_run(RunId::mint(), other).await, Err(StoreError::NotFound(_))));
    store.commit_run(step(run.run, 1, RunState::Ready)).await.expect("let go");
    let (one, two) = tokio::join!(store.take_run(run.run, other), store.take_run(run.run, run.holder));
    let taken: Vec<_> = [one, two].into_iter().filter_map(Result::ok).collect();
    let [taken] = &taken[..] else { panic!("one of them") };
    assert_eq!((taken.record.epoch, &taken.snapshot), (2, &Some(json!({"at": 1}))));
    assert!(matches!(store.commit_run(step(run.run, 1, RunState::Running)).await, Err(StoreError::Lost)), "the old one is fenced");
    store.commit_run(RunCommit { events: vec![ended()], ..step(run.run, 2, RunState::Done) }).await.expect("over");
    assert!(matches!(store.take_run(run.run, other).await, Err(StoreError::Conflict(_))), "it is over");
}

pub async fn a_run_is_given_back_by_whoever_holds_it(store: &dyn Store) {
    let run = started(store).await;
    let other = process(store).await;
    let state = async || store.run(run.run).await.expect("readable").map(|run| (run.state, run.holder, run.epoch));
    for (holder, epoch) in [(other, 1), (run.holder, 2)] {
        store.release_run(run.run, holder, epoch).await.expect("nothing to do");
        assert_eq!(state().await, Some((RunState::Running, Some(run.holder), 1)));
    }
    store.release_run(run.run, run.holder, 1).await.expect("given back");
    assert_eq!(state().await, Some((RunState::Ready, None, 1)));
    assert!(matches!(store.commit_run(step(run.run, 1, RunState::Running)).await, Err(StoreError::Lost)), "it was given back");
    let taken = store.take_run(run.run, run.holder).await.expect("taken");
    assert_eq!((taken.record.epoch, taken.snapshot), (2, Some(json!({"at": 1}))));
    assert_eq!(store.take_run(run.run, run.holder).await.expect("taken by the same process").record.epoch, 3);
    assert!(matches!(store.commit_run(step(run.run, 2, RunState::Running)).await, Err(StoreError::Lost)), "the old one is fenced");
    store.commit_run(RunCommit { events: vec![ended()], ..step(run.run, 3, RunState::Done) }).await.expect("over");
    store.release_run(run.run, run.holder, 3).await.expect("nothing to do");
    assert_eq!(state().await, Some((RunState::Done, None, 3)));
    store.release_run(RunId::mint(), run.holder, 1).await.expect("nothing to do");
}

pub async fn a_run_of_a_process_that_is_gone_can_be_taken(store: &dyn Store) {
    let run = started(store).await;
    let other = process(store).await;
    assert_eq!(store.recover(other).await.expect("nothing").runs, 0);
    store.leave(run.holder).await.expect("left");
    assert_eq!(store.recover(other).await.expect("recovered").runs, 1);
    assert_eq!(store.run(run.run).await.expect("readable").expect("a run").state, RunState::Ready);
    assert_eq!(store.take_run(run.run, other).await.expect("taken").record.epoch, 2);
    // It does not wait for recovery.
    let run = started(store).await;
    store.leave(run.holder).await.expect("left");
    assert_eq!(store.take_run(run.run, other).await.expect("taken").record.epoch, 2);
}

pub async fn a_conversation_cannot_be_split(store: &dyn Store) {
    let run = started(store).await;
    let other = begin(store, run.conversation, &["meanwhile"], 1).await;
    let late =
        RunCommit { messages: vec![said("late")], message_count: 1, events: vec![note("late")], ..step(run.run, 1, RunState::Running) };
    assert!(matches!(store.commit_run(late).await, Err(StoreError::Conflict(_))));
    assert_eq!(seqs(store, run.run).await, [1], "nothing of it is kept");
    let conversation = store.conversation(run.conversation).await.expect("readable").expect("a conversation");
    assert_eq!(conversation.message_count, 2);
    assert_ne!(other.run, run.run);
}

pub async fn results_are_heard_once(store: &dyn Store) {
    let run = started(store).await;
    let caller = of_run(&run);
    let first = accepted(store, NewTask { caller: caller.clone(), ..task("a") }).await;
    let second = accepted(store, NewTask { caller, ..task("a") }).await;
    accepted(store, task("a")).await;
    assert!(store.inbox(run.conversation).await.expect("a list").is_empty());
    for held in claim(store, run.holder, 10).await {
        finish(store, &held, TaskEnd::Over(good(&held))).await;
    }
    let inbox: BTreeSet<_> = store.inbox(run.conversation).await.expect("a list").into_iter().map(|task| task.id).collect();
    assert_eq!(inbox, BTreeSet::from([first, second]));
    let unread = async |state| {
        let filter = TaskFilter::default().unread(true).state(state).limit(10);
        store.tasks(filter).await.expect("a list").into_iter().map(|task| task.id).collect::<BTreeSet<_>>()
    };
    assert_eq!(unread(None).await, inbox, "of all conversations, and not of calls without one");
    assert!(unread(Some(TaskState::Failed)).await.is_empty());
    store.commit_run(RunCommit { read: vec![first], ..step(run.run, 1, RunState::Running) }).await.expect("heard");
    let left = store.inbox(run.conversation).await.expect("a list");
    assert_eq!(left.iter().map(|task| task.id).collect::<Vec<_>>(), [second]);
    store.mark_read(second).await.expect("heard");
    assert!(store.inbox(run.conversation).await.expect("a list").is_empty() && unread(None).await.is_empty());
}

pub async fn a_run_can_be_told_to_stop(store: &dyn Store) {
    let run = started(store).await;
    assert_eq!(store.cancel_run(run.run).await.expect("told").state, RunState::Running);
    assert_eq!(store.keep(run.holder, LEASE, &[]).await.expect("kept").runs, [run.run]);
    assert!(matches!(store.cancel_run(RunId::mint()).await, Err(StoreError::NotFound(_))));
}

pub async fn old_records_are_forgotten(store: &dyn Store) {
    let run = started(store).await;
    store.commit_run(RunCommit { events: vec![ended()], ..step(run.run, 1, RunState::Done) }).await.expect("over");
    let id = accepted(store, task("a")).await;
    let held = claim_one(store, run.holder).await;
    finish(store, &held, TaskEnd::Over(good(&held))).await;
    let (open, talk) = (started(store).await, started(store).await);
    store.commit_run(RunCommit { events: vec![ended()], ..step(talk.run, 1, RunState::Done) }).await.expect("over");
    let caller = Caller::default().conversation(talk.conversation);
    store.add_approval(crate::approvals::approval(caller)).await.expect("asked");
    let queued = accepted(store, task("a")).await;
    assert_eq!(store.prune(Duration::from_hours(1)).await.expect("pruned"), 0);
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(store.prune(Duration::ZERO).await.expect("pruned"), 4);
    assert!(store.run(run.run).await.expect("readable").is_none() && store.task(id).await.expect("readable").is_none());
    assert!(seqs(store, run.run).await.is_empty());
    assert!(store.conversation(run.conversation).await.expect("readable").is_none(), "nothing is left of it");
    let kept = store.conversation(open.conversation).await.expect("readable").expect("a run needs it");
    assert_eq!(kept.messages.len(), 1);
    assert!(store.conversation(talk.conversation).await.expect("readable").is_some(), "an approval is pending in it");
    assert!(store.run(open.run).await.expect("readable").is_some() && store.task(queued).await.expect("readable").is_some());
}

pub async fn large_bodies_are_kept_by_their_digest(store: &dyn Store) {
    let bytes = vec![7; 200_000];
    let digest = store.put_body(&bytes).await.expect("kept");
    assert_eq!(store.put_body(&bytes).await.expect("kept"), digest);
    assert_eq!(store.body(digest).await.expect("readable"), Some(bytes));
    assert_eq!(store.body(definition("other")).await.expect("readable"), None);
}

pub async fn changes_are_told(store: &dyn Store) {
    let mut changes = store.changes();
    changes.mark_unchanged();
    accepted(store, task("a")).await;
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("soon").expect("a change");
    // Who finds nothing changes nothing: a worker that waits for changes must not wake itself.
    let worker = process(store).await;
    claim(store, worker, 1).await;
    changes.mark_unchanged();
    claim(store, worker, 1).await;
    store.recover(worker).await.expect("nothing");
    store.keep(worker, LEASE, &[]).await.expect("kept");
    assert!(!changes.has_changed().expect("a store"));
}

pub async fn large_rows_come_back_whole(store: &dyn Store) {
    let run = started(store).await;
    let long = "long ".repeat(60_000);
    let commit = RunCommit {
        events: vec![note(&long), note("short")],
        messages: vec![said(&long)],
        message_count: 1,
        snapshot: Some(json!({"text": long})),
        ..step(run.run, 1, RunState::Ready)
    };
    store.commit_run(commit).await.expect("recorded");
    let events = store.events(run.run, 1, 10).await.expect("events");
    assert!(matches!(&events[..], [first, _] if matches!(&first.data, EventData::Notification { message } if *message == long)));
    let conversation = store.conversation(run.conversation).await.expect("readable").expect("a conversation");
    assert!(format!("{:?}", conversation.messages[1].body()).contains(&long));
    assert_eq!(store.take_run(run.run, run.holder).await.expect("taken").snapshot, Some(json!({"text": long})));
}
