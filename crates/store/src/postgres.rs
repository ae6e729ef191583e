//! A store in PostgreSQL, for processes on several machines.
//!
//! The functions in `helve_core::store::transact` define the transactions. Each transaction locks and loads its rows in one round trip,
//! changes them in memory, and writes them in the next. Tasks are accepted, claimed and finished in batches that share a transaction.
//! Leases use the server's clock.
//!
//! Connections to other machines use TLS and verify the server's certificate, unless the URL says otherwise. The server's settings
//! decide how durable a commit is; `synchronous_commit` must not be `off`.

mod address;
mod batch;
mod draft;
mod error;
mod flush;
mod keys;
mod notify;
mod queue;
mod read;
mod row;
mod schema;
mod session;
mod thread;
mod tls;
mod transaction;
mod upkeep;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use helve_core::store::{
    AcceptResult, Approval, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult, NewTask,
    Progress, RecoveryReport, RunCommit, RunRecord, RunState, Stop, Stored, TakenRun, Task, TaskFilter, TaskState, transact,
};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, RunId, Store, StoreError};
use tokio::sync::watch;

use self::address::Address;
use self::batch::Batcher;
use self::draft::Draft;
use self::keys::Keys;
use self::notify::Notifier;
use self::queue::{ClaimRequest, Claims};
use self::session::values;
use self::thread::RuntimeThread;
use crate::row::count;

/// A store in a PostgreSQL database. Clones share the connections.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    thread: RuntimeThread,
    pool: Pool,
    notifier: Notifier,
    accept: Batcher<NewTask, AcceptResult>,
    claim: Batcher<ClaimRequest, Vec<Task>>,
    finish: Batcher<Vec<Finish>, Vec<FinishResult>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens a database by its URL, such as `postgres://user@host/name`. Creates the tables, if they are missing, in the first schema of
    /// the search path.
    ///
    /// Connections to other machines use TLS. The server's certificate must match the host name in the URL and be issued by a CA that this
    /// machine trusts, or by a CA in the file `sslrootcert=FILE`. `sslmode=disable` turns TLS off; `sslmode=prefer` uses TLS only if the
    /// server supports it.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached, if its certificate cannot be verified, or if a newer version of Helve wrote the
    /// tables.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let (thread, address) = (RuntimeThread::start()?, Address::read(url)?);
        let (pool, notifier, accept, claim, finish) = thread.run(connect(address)).await?;
        Ok(Self(Arc::new(Inner { thread, pool, notifier, accept, claim, finish })))
    }

    /// Runs a transaction, and notifies all processes. The transaction completes even if the returned future is dropped.
    fn change<I: Clone + Send + Sync + 'static, T: Send + 'static>(
        &self,
        name: &'static str,
        keys: Keys,
        input: I,
        change: impl Fn(&mut Draft, I) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Stored<'_, T> {
        let pool = self.0.pool.clone();
        self.write(async move { transaction::write_one(&pool, name, keys, input, change).await })
    }

    /// Runs an operation that writes, and notifies all processes.
    fn write<T: Send + 'static>(&self, work: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Stored<'_, T> {
        self.notify_after(self.0.thread.run(work), |_| true)
    }

    /// Waits for an operation, and notifies all processes if `changed` returns true for its result.
    fn notify_after<'a, T: Send + 'static>(
        &'a self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
        changed: impl FnOnce(&T) -> bool + Send + 'a,
    ) -> Stored<'a, T> {
        Box::pin(async move {
            let value = work.await?;
            if changed(&value) {
                self.0.notifier.notify_all();
            }
            Ok(value)
        })
    }

    fn read<T: Send + 'static, F: Future<Output = Result<T, StoreError>> + Send + 'static>(
        &self,
        read: impl FnOnce(Pool) -> F,
    ) -> Stored<'_, T> {
        Box::pin(self.0.thread.run(read(self.0.pool.clone())))
    }
}

type Parts = (Pool, Notifier, Batcher<NewTask, AcceptResult>, Batcher<ClaimRequest, Vec<Task>>, Batcher<Vec<Finish>, Vec<FinishResult>>);

/// Creates the connection pool, migrates the tables, and starts the background tasks.
async fn connect(address: Address) -> Result<Parts, StoreError> {
    let pool = session::pool(address.clone())?;
    schema::migrate(&pool).await?;
    let (accept, claims, finish) = (pool.clone(), Arc::new(Claims::new(pool.clone())), pool.clone());
    let accept = Batcher::start(move |tasks| queue::accept(accept.clone(), tasks));
    let claim = Batcher::start(move |requests| claims.clone().claim(requests));
    let finish = Batcher::start(move |ended| queue::finish(finish.clone(), ended));
    Ok((pool, Notifier::start(address).await, accept, claim, finish))
}

impl Store for PostgresStore {
    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
        let (pool, progress) = (self.0.pool.clone(), progress.to_vec());
        let changes = !progress.is_empty();
        self.notify_after(self.0.thread.run(async move { upkeep::keep(&pool, holder, lease, &progress).await }), move |_| changes)
    }

    fn recover(&self, holder: HolderId) -> Stored<'_, RecoveryReport> {
        let pool = self.0.pool.clone();
        let work = self.0.thread.run(async move { upkeep::recover(&pool, holder).await });
        self.notify_after(work, |recovered| *recovered != RecoveryReport::default())
    }

    fn leave(&self, holder: HolderId) -> Stored<'_, ()> {
        let pool = self.0.pool.clone();
        self.write(async move { upkeep::leave(&pool, holder).await })
    }

    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult> {
        self.notify_after(self.0.accept.send(task), |_| true)
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        let tools = claim.tools.map(keys::texts);
        let claimed = self.0.claim.send(ClaimRequest { holder: claim.holder, limit: claim.limit, tools });
        Box::pin(async move {
            let tasks = claimed.await?;
            // Notify only this process, because others do not wait for claims; and only after a claim, or an idle worker would wake itself.
            if !tasks.is_empty() {
                self.0.notifier.notify_here();
            }
            Ok(tasks)
        })
    }

    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>> {
        self.notify_after(self.0.finish.send(ended), |_| true)
    }

    fn cancel_task(&self, task: CallId) -> Stored<'_, CancelResult> {
        self.change("cancel_task", of_task(task), task, |draft, task| transact::cancel_task(draft, task))
    }

    fn retry_task(&self, task: CallId) -> Stored<'_, Task> {
        let copy = CallId::mint();
        let keys = Keys { fresh: [copy].into(), ..of_task(task) };
        self.change("retry_task", keys, task, move |draft, task| transact::retry_task(draft, task, copy))
    }

    fn task(&self, task: CallId) -> Stored<'_, Option<Task>> {
        self.read(|pool| async move { Ok(read::tasks(pool, read::TASK, values![task.to_string()]).await?.pop()) })
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>> {
        let sql = if filter.unread { read::UNHEARD } else { read::TASKS };
        let conversation = filter.conversation.map(|id| id.to_string());
        self.read(|pool| read::tasks(pool, sql, values![filter.state.map(TaskState::name), conversation, count(filter.limit)]))
    }

    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>> {
        self.read(|pool| read::tasks(pool, read::INBOX, values![conversation.to_string()]))
    }

    fn mark_read(&self, task: CallId) -> Stored<'_, ()> {
        self.change("hear", of_task(task), task, |draft, task| transact::mark_read(draft, task))
    }

    fn add_approval(&self, approval: Approval) -> Stored<'_, ()> {
        let keys = Keys { approvals: [approval.request.id].into(), ..Keys::default() };
        self.change("ask", keys, approval, |draft, approval| transact::add_approval(draft, &approval))
    }

    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult> {
        let keys = Keys { approvals: [approval].into(), ..Keys::default() };
        self.change("answer", keys, decision, move |draft, decision| transact::decide(draft, approval, decision))
    }

    fn approval(&self, approval: ApprovalId) -> Stored<'_, Option<Approval>> {
        self.read(|pool| read::one(pool, read::APPROVAL, values![approval.to_string()]))
    }

    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>> {
        self.read(|pool| read::list(pool, read::APPROVALS, values![run.map(|run| run.to_string()), open, count(limit)]))
    }

    fn take_run(&self, run: RunId, holder: HolderId) -> Stored<'_, TakenRun> {
        let keys = Keys { runs: [run].into(), snapshots: [run].into(), ..Keys::default() };
        self.change("take_run", keys, run, move |draft, run| transact::take_run(draft, run, holder))
    }

    fn release_run(&self, run: RunId, holder: HolderId, epoch: u64) -> Stored<'_, ()> {
        let keys = Keys { runs: [run].into(), ..Keys::default() };
        self.change("release_run", keys, run, move |draft, run| transact::release_run(draft, run, holder, epoch))
    }

    fn commit_run(&self, commit: RunCommit) -> Stored<'_, u64> {
        let keys = Keys {
            runs: [commit.run].into(),
            whole_runs: [commit.run].into(),
            conversations: commit.begin.iter().map(|begin| begin.conversation).collect(),
            approvals: commit.approvals.iter().map(|approval| approval.request.id).collect(),
            tasks: commit.read.iter().copied().collect(),
            ..Keys::default()
        };
        self.change("commit_run", keys, Arc::new(commit), |draft, commit| transact::commit_run(draft, RunCommit::clone(&commit)))
    }

    fn cancel_run(&self, run: RunId) -> Stored<'_, RunRecord> {
        let keys = Keys { runs: [run].into(), ..Keys::default() };
        self.change("cancel_run", keys, run, |draft, run| transact::cancel_run(draft, run))
    }

    fn run(&self, run: RunId) -> Stored<'_, Option<RunRecord>> {
        self.read(|pool| read::one(pool, read::RUN, values![run.to_string()]))
    }

    fn runs(&self, state: Option<RunState>, limit: usize) -> Stored<'_, Vec<RunRecord>> {
        self.read(|pool| read::list(pool, read::RUNS, values![state.map(RunState::name), count(limit)]))
    }

    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>> {
        self.read(|pool| read::list(pool, read::EVENTS, values![run.to_string(), count(after), count(limit)]))
    }

    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>> {
        self.read(|pool| read::conversation(pool, conversation))
    }

    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>> {
        self.read(|pool| read::list(pool, read::CONVERSATIONS, values![count(limit)]))
    }

    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest> {
        self.write(read::put_body(self.0.pool.clone(), Digest::of([bytes]), bytes.to_vec()))
    }

    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>> {
        self.read(|pool| read::body(pool, digest))
    }

    fn prune(&self, age: Duration) -> Stored<'_, usize> {
        let pool = self.0.pool.clone();
        self.write(async move { upkeep::prune(&pool, age).await })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.notifier.changes()
    }
}

fn of_task(task: CallId) -> Keys {
    Keys { tasks: [task].into(), ..Keys::default() }
}
