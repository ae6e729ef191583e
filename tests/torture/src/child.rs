//! The process that is killed: producers, people, a driver of runs, a subscriber and a worker on one record.

mod people;
mod producers;
mod subscriber;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{NewTask, TaskFilter};
use helve_core::{CallId, Caller, CancellationToken, Digest, HolderId, ListSource, Output, Rules, Store, ToolCall, ToolSpec};
use helve_store::SqliteStore;
use helve_testkit::{fake, spec};
use helve_tools::{Catalogue, Executor, Record, Worker};
use serde_json::json;

use crate::fault::{Fault, Faulty};
use crate::log::{Log, Paths};
use crate::witness::Witness;

/// How many clients put calls into the queue.
const PRODUCERS: usize = 4;
/// How many calls run at once.
const WORKERS: usize = 8;
/// How long the driver of runs in this process holds them. Its successor need not wait for that.
const LEASE: Duration = Duration::from_mins(1);

/// What the clients in this process share.
#[derive(Clone)]
pub(crate) struct Scene {
    store: Arc<dyn Store>,
    driver: HolderId,
    once: Kind,
    again: Kind,
}

/// A tool that calls are for.
#[derive(Clone)]
struct Kind {
    spec: Arc<ToolSpec>,
    definition: Digest,
    idempotent: bool,
}

/// What a child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It works until it is killed.
    Alone(Option<Fault>),
    /// It works until it is killed, beside another one. Nobody subscribes: two subscribers would be two histories.
    Rival,
    /// It ends when nothing is left to do.
    Last,
}

/// Works on the record.
pub fn run(paths: &Paths, part: Part) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let mut store: Arc<dyn Store> = Arc::new(SqliteStore::open(paths.record()).expect("a record"));
        if let Part::Alone(Some(fault)) = part {
            store = Arc::new(Faulty { inner: store, fault });
        }
        let store: Arc<dyn Store> = Arc::new(Witness::new(store, paths));
        let catalogue = tools(paths);
        let scene =
            Scene { store: store.clone(), driver: HolderId::mint(), once: kind(&catalogue, "once"), again: kind(&catalogue, "again") };
        say_ready();
        let stop = CancellationToken::new();
        let worker = Worker::new(Record::new(store), Executor::default(), catalogue, WORKERS);
        let working = tokio::spawn(worker.run(stop.clone()));
        if part == Part::Last {
            drain(&scene, paths).await;
            stop.cancel();
            working.await.expect("a worker");
        } else {
            busy(&scene, (part != Part::Rival).then(|| subscriber::Places::read(paths))).await;
        }
    });
}

/// The parent counts from here to the kill.
fn say_ready() {
    let mut out = std::io::stdout();
    out.write_all(b"ready\n").and_then(|()| out.flush()).expect("a parent that listens");
}

/// A call of one of the tools.
#[must_use]
pub fn task(paths: &Paths, name: &str) -> NewTask {
    producers::task(&kind(&tools(paths), name), ToolCall::new(name, json!({})), Caller::default())
}

/// Tools that write down that they ran before they do anything. One may run twice, one may not, and one takes its process down.
fn tools(paths: &Paths) -> Catalogue {
    let ran = Arc::new(Log::open(&paths.ran()));
    let tool = |name: &str, idempotent: bool| {
        let ran = ran.clone();
        fake(spec(name).with_rules(Rules { idempotent, ..Rules::default() }), move |call, _| {
            let ran = ran.clone();
            Box::pin(async move {
                ran.add(&call.id);
                if &*call.tool == "poison" {
                    std::process::abort();
                }
                tokio::time::sleep(Duration::from_micros(fastrand::u64(..4000))).await;
                // Each run has a result of its own, so that one cannot pass for another.
                Ok(Output::text(format!("{:08x}", fastrand::u32(..))))
            })
        })
    };
    let catalogue = Catalogue::new();
    catalogue.add_source(Arc::new(ListSource::new("torture", [tool("once", false), tool("again", true), tool("poison", true)])));
    catalogue
}

fn kind(catalogue: &Catalogue, name: &str) -> Kind {
    let entry = catalogue.get(name).expect("a tool");
    Kind { spec: entry.spec().clone(), definition: entry.digest(), idempotent: entry.spec().rules().idempotent }
}

/// All clients at once, for ever.
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

/// Answers and drives until nothing is open, and reads what is there.
async fn drain(scene: &Scene, paths: &Paths) {
    let store = &scene.store;
    loop {
        store.keep(scene.driver, LEASE, &[]).await.expect("a lease");
        // The worker looks again after each change, also for what the parent made due. This one changes nothing.
        store.hear(CallId::mint()).await.expect("a change");
        people::answer_all(scene).await;
        let runs = people::drive_ready(scene).await;
        let tasks = store.tasks(TaskFilter { limit: usize::MAX, ..TaskFilter::default() }).await.expect("a list");
        let open: Vec<CallId> = tasks.iter().filter(|task| !task.state.is_over()).map(|task| task.id).collect();
        if runs == 0 && open.is_empty() && people::idle(scene).await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut places = subscriber::Places::read(paths);
    subscriber::read_all(scene, &mut places, usize::MAX).await;
}
