//! PostgreSQL: many processes on many machines, one server.
//!
//! Transactions are those of `helve-core`: their rows are locked and loaded in one trip, changed in memory, and written in the
//! next. Accepting and finishing tasks, of which there are many, share transactions. The server's clock decides about leases.
//!
//! Connections to other machines are encrypted, and the server proves its name, unless the address says otherwise. How durable a
//! commit is, is the server's setting; `synchronous_commit` must not be `off`.

mod address;
mod draft;
mod flush;
mod home;
mod keys;
mod lane;
mod queue;
mod read;
mod record;
mod schema;
mod session;
mod tls;
mod transaction;
mod trouble;
mod upkeep;
mod wake;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use helve_core::store::{
    AcceptResult, Approval, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult, NewTask,
    Progress, RecoveryReport, RunCommit, RunRecord, RunState, Stop, Stored, TakenRun, Task, TaskFilter, transact,
};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, RunId, Store, StoreError};
use tokio::sync::watch;

use self::address::Address;
use self::draft::Draft;
use self::home::Home;
use self::keys::Keys;
use self::lane::Lane;
use self::queue::{Claims, Wish};
use self::wake::Wake;

/// A store in a PostgreSQL database. Clones share.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    home: Home,
    pool: Pool,
    wake: Wake,
    accept: Lane<NewTask, AcceptResult>,
    claim: Lane<Wish, Vec<Task>>,
    finish: Lane<Vec<Finish>, Vec<FinishResult>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens a database by its address, as in `postgres://user@host/name`. Tables are made in the first schema of its search
    /// path.
    ///
    /// Servers on other machines must have TLS and a certificate for the name in the address, from an authority that this machine
    /// trusts or that `sslrootcert=FILE` names. `sslmode=disable` does without, `sslmode=prefer` where the server has no TLS.
    ///
    /// # Errors
    /// Where the server cannot be reached or does not prove who it is, or a newer version of Helve wrote the tables.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let (home, address) = (Home::start()?, Address::read(url)?);
        let (pool, wake, accept, claim, finish) = home.run(connect(address)).await?;
        Ok(Self(Arc::new(Inner { home, pool, wake, accept, claim, finish })))
    }

    /// A transaction in a task of its own: it is done even if nobody waits for its answer.
    fn change<I: Clone + Send + Sync + 'static, T: Send + 'static>(
        &self,
        name: &'static str,
        keys: Keys,
        input: I,
        change: impl Fn(&mut Draft, I) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Stored<'_, T> {
        let pool = self.0.pool.clone();
        self.told(async move { transaction::write_one(&pool, name, keys, input, change).await })
    }

    /// Does something, and tells everybody.
    fn told<T: Send + 'static>(&self, work: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Stored<'_, T> {
        let work = self.0.home.run(work);
        Box::pin(async move {
            let value = work.await?;
            self.0.wake.everywhere();
            Ok(value)
        })
    }

    /// Reads something.
    fn read<T: Send + 'static, F: Future<Output = Result<T, StoreError>> + Send + 'static>(
        &self,
        read: impl FnOnce(Pool) -> F,
    ) -> Stored<'_, T> {
        Box::pin(self.0.home.run(read(self.0.pool.clone())))
    }
}

type Parts = (Pool, Wake, Lane<NewTask, AcceptResult>, Lane<Wish, Vec<Task>>, Lane<Vec<Finish>, Vec<FinishResult>>);

/// Connects, and starts what works beside the callers.
async fn connect(address: Address) -> Result<Parts, StoreError> {
    let pool = session::pool(address.clone())?;
    schema::migrate(&pool).await?;
    let (accept, claims, finish) = (pool.clone(), Arc::new(Claims::new(pool.clone())), pool.clone());
    let accept = Lane::start(move |tasks| queue::accept(accept.clone(), tasks));
    let claim = Lane::start(move |wishes| claims.clone().claim(wishes));
    let finish = Lane::start(move |ended| queue::finish(finish.clone(), ended));
    Ok((pool, Wake::start(address).await, accept, claim, finish))
}

impl Store for PostgresStore {
    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
        let (pool, progress) = (self.0.pool.clone(), progress.to_vec());
        let quiet = progress.is_empty();
        let work = self.0.home.run(async move { upkeep::keep(&pool, holder, lease, &progress).await });
        Box::pin(async move {
            let stop = work.await?;
            if !quiet {
                self.0.wake.everywhere();
            }
            Ok(stop)
        })
    }

    fn recover(&self, holder: HolderId) -> Stored<'_, RecoveryReport> {
        let pool = self.0.pool.clone();
        let work = self.0.home.run(async move { upkeep::recover(&pool, holder).await });
        Box::pin(async move {
            let found = work.await?;
            if found != RecoveryReport::default() {
                self.0.wake.everywhere();
            }
            Ok(found)
        })
    }

    fn leave(&self, holder: HolderId) -> Stored<'_, ()> {
        let pool = self.0.pool.clone();
        self.told(async move { upkeep::leave(&pool, holder).await })
    }

    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult> {
        let accepted = self.0.accept.send(task);
        Box::pin(async move {
            let accepted = accepted.await?;
            self.0.wake.everywhere();
            Ok(accepted)
        })
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        let tools = claim.tools.map(keys::texts);
        let claimed = self.0.claim.send(Wish { holder: claim.holder, limit: claim.limit, tools });
        Box::pin(async move {
            let tasks = claimed.await?;
            // Nobody elsewhere waits for a task to be taken, and a worker that found nothing must not wake itself.
            if !tasks.is_empty() {
                self.0.wake.here();
            }
            Ok(tasks)
        })
    }

    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>> {
        let finished = self.0.finish.send(ended);
        Box::pin(async move {
            let finished = finished.await?;
            self.0.wake.everywhere();
            Ok(finished)
        })
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
        self.read(move |pool| async move { read::task(&pool, task).await })
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>> {
        self.read(move |pool| async move { read::tasks(&pool, filter).await })
    }

    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>> {
        self.read(move |pool| async move { read::inbox(&pool, conversation).await })
    }

    fn hear(&self, task: CallId) -> Stored<'_, ()> {
        self.change("hear", of_task(task), task, |draft, task| transact::hear(draft, task))
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
        self.read(move |pool| async move { read::approval(&pool, approval).await })
    }

    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>> {
        self.read(move |pool| async move { read::approvals(&pool, run, open, limit).await })
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
            stepping: [commit.run].into(),
            conversations: commit.begin.iter().map(|begin| begin.conversation).collect(),
            approvals: commit.asked.iter().map(|approval| approval.request.id).collect(),
            tasks: commit.heard.iter().copied().collect(),
            ..Keys::default()
        };
        self.change("commit_run", keys, Arc::new(commit), |draft, commit| transact::commit_run(draft, RunCommit::clone(&commit)))
    }

    fn cancel_run(&self, run: RunId) -> Stored<'_, RunRecord> {
        let keys = Keys { runs: [run].into(), ..Keys::default() };
        self.change("cancel_run", keys, run, |draft, run| transact::cancel_run(draft, run))
    }

    fn run(&self, run: RunId) -> Stored<'_, Option<RunRecord>> {
        self.read(move |pool| async move { read::run(&pool, run).await })
    }

    fn runs(&self, state: Option<RunState>, limit: usize) -> Stored<'_, Vec<RunRecord>> {
        self.read(move |pool| async move { read::runs(&pool, state, limit).await })
    }

    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>> {
        self.read(move |pool| async move { read::events(&pool, run, after, limit).await })
    }

    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>> {
        self.read(move |pool| async move { read::conversation(&pool, conversation).await })
    }

    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>> {
        self.read(move |pool| async move { read::conversations(&pool, limit).await })
    }

    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest> {
        let (pool, digest, bytes) = (self.0.pool.clone(), Digest::of([bytes]), bytes.to_vec());
        self.told(async move { read::put_body(&pool, digest, bytes).await.map(|()| digest) })
    }

    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>> {
        self.read(move |pool| async move { read::body(&pool, digest).await })
    }

    fn prune(&self, age: Duration) -> Stored<'_, usize> {
        let pool = self.0.pool.clone();
        self.told(async move { upkeep::prune(&pool, age).await })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.wake.changes()
    }
}

fn of_task(task: CallId) -> Keys {
    Keys { tasks: [task].into(), ..Keys::default() }
}
