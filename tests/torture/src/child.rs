//! The process that is killed: producers, approvers, a driver of runs, a subscriber and a worker on one store.

mod people;
mod producers;
mod subscriber;
mod tools;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{NewTask, TaskFilter, TaskState};
use helve_core::{CallId, Caller, CancellationToken, HolderId, Store, ToolCall};
use helve_tools::{Executor, StoreHandle, Worker};
use serde_json::json;

use self::tools::{Kind, kind};
use crate::fault::{Fault, FaultyStore};
use crate::location::StoreLocation;
use crate::log::{Log, Paths};
use crate::process::die_with_the_parent;
use crate::retrying::RetryingStore;
use crate::witness::WitnessStore;

/// How many clients put calls into the queue.
const PRODUCERS: usize = 4;
/// How many calls run at once.
const WORKERS: usize = 8;
/// The lease of the driver of runs in this process. Its successor need not wait for that.
const LEASE: Duration = Duration::from_mins(1);
/// A process with a short lease renews it so many times before it ends, and looks as often for others whose lease is over.
const BEATS: u32 = 5;
/// The same interval for a process with a long lease.
const BEAT: Duration = Duration::from_secs(1);

/// What the clients in this process share.
#[derive(Clone)]
pub(crate) struct Scene {
    store: Arc<dyn Store>,
    driver: HolderId,
    once: Kind,
    again: Kind,
}

/// What a child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It works until it is killed.
    Alone(Option<Fault>),
    /// It works until it is killed, beside another one. It has no subscriber: two of them would be two histories.
    Rival,
    /// It works beside another one until its input ends, and then ends what is left. Its clients retry while the store cannot be
    /// used. The first one subscribes.
    Beside {
        /// Which one it is.
        number: usize,
        /// The lease of all that it holds.
        lease: Duration,
    },
    /// It does nothing but to run calls until it is killed, with a lease of this length.
    Worker(Duration),
    /// It ends when nothing is left to do.
    Last,
}

/// Works on the store.
pub fn run(paths: &Paths, place: &StoreLocation, role: Role) {
    die_with_the_parent();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let mut store = place.open().await;
        if let Role::Alone(Some(fault)) = role {
            store = Arc::new(FaultyStore { inner: store, fault });
        }
        let lease = if let Role::Beside { lease, .. } | Role::Worker(lease) = role { lease } else { LEASE };
        let store: Arc<dyn Store> = Arc::new(WitnessStore::new(store, paths, lease));
        let catalogue = tools::tools(paths);
        let mut scene =
            Scene { store: store.clone(), driver: HolderId::mint(), once: kind(&catalogue, "once"), again: kind(&catalogue, "again") };
        say_ready();
        let stop = CancellationToken::new();
        let record = StoreHandle::new(store.clone());
        let holder = record.holder();
        let working = tokio::spawn(Worker::new(record, Executor::default(), catalogue, WORKERS).run(stop.clone()));
        match role {
            Role::Alone(_) => busy(&scene, Some(subscriber::Places::read(paths))).await,
            Role::Rival => busy(&scene, None).await,
            Role::Worker(_) => beat(store, vec![holder], lease).await,
            Role::Last => drain(&scene, Some(paths)).await,
            Role::Beside { number, .. } => {
                let beating = tokio::spawn(beat(store.clone(), vec![holder, scene.driver], lease));
                scene.store = Arc::new(RetryingStore { inner: store.clone(), pulse: Log::open(&paths.pulse(number)) });
                let subscribes = number == 0;
                tokio::select! {
                    () = busy(&scene, subscribes.then(|| subscriber::Places::read(paths))) => {}
                    () = input_ends() => {}
                }
                beating.abort();
                // The next driver completes what its clients left unfinished; that is this process.
                scene.store.leave(scene.driver).await.expect("a lease less");
                scene.driver = HolderId::mint();
                let beating = tokio::spawn(beat(store, vec![holder, scene.driver], lease));
                drain(&scene, subscribes.then_some(paths)).await;
                beating.abort();
            }
        }
        stop.cancel();
        working.await.expect("a worker");
    });
}

/// The parent counts from here to the kill.
fn say_ready() {
    let mut out = std::io::stdout();
    out.write_all(b"ready\n").and_then(|()| out.flush()).expect("a parent that listens");
}

/// Waits until the parent has nothing more to say.
async fn input_ends() {
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let read = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(read);
    });
    end.await.expect("a thread").expect("a parent");
}

/// Renews leases, and takes over from others, more often than a worker does by itself. What fails is tried again soon.
async fn beat(store: Arc<dyn Store>, holders: Vec<HolderId>, lease: Duration) {
    let mut beat = tokio::time::interval((lease / BEATS).min(BEAT));
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        for holder in &holders {
            let _ = store.keep(*holder, lease, &[]).await;
        }
        let _ = store.recover(holders[0]).await;
    }
}

/// A call of one of the tools.
#[must_use]
pub fn task(paths: &Paths, name: &str) -> NewTask {
    producers::task(&kind(&tools::tools(paths), name), ToolCall::new(name, json!({})), Caller::default())
}

/// Runs all clients at once, forever.
async fn busy(scene: &Scene, places: Option<subscriber::Places>) {
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..PRODUCERS {
        clients.spawn(producers::produce(scene.clone()));
    }
    clients.spawn(people::ask(scene.clone()));
    clients.spawn(people::answer_some(scene.clone()));
    clients.spawn(people::drive(scene.clone()));
    if let Some(places) = places {
        clients.spawn(subscriber::follow(scene.clone(), places));
    }
    if let Some(ended) = clients.join_next().await {
        ended.expect("a client that goes on");
    }
}

/// Decides approvals and drives runs until nothing is left, and then reads all events if asked to.
async fn drain(scene: &Scene, read: Option<&Paths>) {
    let store = &scene.store;
    loop {
        store.keep(scene.driver, LEASE, &[]).await.expect("a lease");
        // The worker polls again after each change, also for what the parent made due. This change is empty.
        store.mark_read(CallId::mint()).await.expect("a change");
        people::answer_all(scene).await;
        let runs = people::drive_ready(scene).await;
        let mut open = false;
        // Twice: a task that goes back to the queue between two reads is in neither.
        for state in [TaskState::Queued, TaskState::Running, TaskState::Queued, TaskState::Running] {
            open |= !store.tasks(TaskFilter::default().state(state).limit(1)).await.expect("a list").is_empty();
        }
        if runs == 0 && !open && people::idle(scene).await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if let Some(paths) = read {
        let mut places = subscriber::Places::read(paths);
        subscriber::read_all(scene, &mut places, usize::MAX).await;
    }
}
