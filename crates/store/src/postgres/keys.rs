//! Locks and loads the rows that a transaction needs, in one round trip.
//!
//! Rows are always locked in the same order, so that transactions do not deadlock: runs, conversations, approvals, tasks, and by id
//! within each table. A task is locked after its run, which is safe because the run of a task never changes.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use helve_core::store::{Approval, ConversationRecord, RunRecord};
use helve_core::{ApprovalId, CallId, ConversationId, HolderId, RunId, StoreError};
use tokio_postgres::Row;

use super::draft::Draft;
use super::error::TransactionError;
use super::row::{self, list, value};
use super::session::{Query, Session, values};
use crate::row::moment;

const RUNS: &str = "SELECT body FROM helve_runs WHERE id = ANY($1::text[]
    || ARRAY(SELECT run FROM helve_tasks WHERE id = ANY($2::text[]) AND run IS NOT NULL)
    || ARRAY(SELECT run FROM helve_approvals WHERE id = ANY($3::text[]) AND run IS NOT NULL)) ORDER BY id FOR UPDATE";
const CONVERSATIONS: &str = "SELECT body FROM helve_conversations WHERE id = ANY($1::text[]
    || ARRAY(SELECT conversation FROM helve_runs WHERE id = ANY($2::text[]))) ORDER BY id FOR UPDATE";
const APPROVALS: &str = "SELECT body FROM helve_approvals WHERE id = ANY($1::text[]
    || ARRAY(SELECT id FROM helve_approvals WHERE state = 'pending' AND run = ANY($2::text[]))) ORDER BY id FOR UPDATE";
const TASKS: &str =
    "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE";
const SNAPSHOTS: &str = "SELECT run, body FROM helve_snapshots WHERE run = ANY($1::text[])";
const ALIVE: &str = "SELECT id FROM helve_holders WHERE id = ANY($1::text[]) AND until > clock_timestamp()";
/// Reads the server's time and process id. This must be the last statement, so that all locks are held at that time.
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_backend_pid()";

/// The keys of the rows that a transaction needs. [`Self::load`] also loads the runs of tasks and approvals.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    pub(super) runs: BTreeSet<RunId>,
    /// The runs to load with their conversation and their pending approval requests.
    pub(super) whole_runs: BTreeSet<RunId>,
    pub(super) snapshots: BTreeSet<RunId>,
    pub(super) conversations: BTreeSet<ConversationId>,
    pub(super) approvals: BTreeSet<ApprovalId>,
    pub(super) tasks: BTreeSet<CallId>,
    /// Tasks that are assumed to be new, and so are not loaded. If such a task exists, the insert fails with a conflict, and the retry
    /// loads the task.
    pub(super) fresh: BTreeSet<CallId>,
    /// Processes whose leases must be loaded.
    pub(super) holders: BTreeSet<HolderId>,
}

impl Keys {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
            && self.whole_runs.is_empty()
            && self.snapshots.is_empty()
            && self.conversations.is_empty()
            && self.approvals.is_empty()
            && self.tasks.is_empty()
            && self.holders.is_empty()
    }

    pub(super) fn add(&mut self, more: Self) {
        self.runs.extend(more.runs);
        self.whole_runs.extend(more.whole_runs);
        self.snapshots.extend(more.snapshots);
        self.conversations.extend(more.conversations);
        self.approvals.extend(more.approvals);
        self.tasks.extend(more.tasks);
        self.fresh.extend(more.fresh);
        self.holders.extend(more.holders);
    }

    /// Moves the tasks that were assumed to be new to `tasks`, so that the next attempt loads them.
    pub(super) fn check_fresh(&mut self) {
        self.tasks.append(&mut self.fresh);
    }

    /// Begins a transaction, locks the rows, and loads them into a draft.
    pub(super) async fn load(&self, session: &Session) -> Result<Draft, TransactionError> {
        let mut queries = vec![Query("BEGIN", values![])];
        // The index of each table's statement in the pipeline; `None` if the transaction needs no rows of the table.
        let mut places = [None; 6];
        let mut want = |place: usize, wanted: bool, query: &dyn Fn() -> Query| {
            if wanted {
                places[place] = Some(queries.len());
                queries.push(query());
            }
        };
        let related = !(self.runs.is_empty() && self.tasks.is_empty() && self.approvals.is_empty());
        want(0, related, &|| Query(RUNS, values![texts(&self.runs), texts(&self.tasks), texts(&self.approvals)]));
        let related = !(self.conversations.is_empty() && self.whole_runs.is_empty());
        want(1, related, &|| Query(CONVERSATIONS, values![texts(&self.conversations), texts(&self.whole_runs)]));
        let related = !(self.approvals.is_empty() && self.whole_runs.is_empty());
        want(2, related, &|| Query(APPROVALS, values![texts(&self.approvals), texts(&self.whole_runs)]));
        want(3, !self.tasks.is_empty(), &|| Query(TASKS, values![texts(&self.tasks)]));
        want(4, !self.snapshots.is_empty(), &|| Query(SNAPSHOTS, values![texts(&self.snapshots)]));
        want(5, !self.holders.is_empty(), &|| Query(ALIVE, values![texts(&self.holders)]));
        queries.push(Query(NOW, values![]));
        let mut results = session.pipeline(queries).await?;
        let now = results.pop().and_then(|rows| rows.into_iter().next());
        let now = now.ok_or_else(|| StoreError::Unavailable("the server returned no time".to_owned()))?;
        let tables = places.map(|place| place.and_then(|place| results.get_mut(place)).map(std::mem::take).unwrap_or_default());
        Ok(self.draft(&now, tables)?)
    }

    fn draft(&self, now: &Row, tables: [Vec<Row>; 6]) -> Result<Draft, StoreError> {
        let [runs, conversations, approvals, tasks, snapshots, alive] = tables;
        let (now, backend) = (moment(row::column(now, 0)?)?, row::column(now, 1)?);
        let mut draft = Draft::new(now, backend, self, alive.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?);
        for run in list::<RunRecord>(&runs)? {
            draft.runs.load(run.id, run);
        }
        for conversation in list::<ConversationRecord>(&conversations)? {
            draft.conversations.load(conversation.id, conversation);
        }
        for approval in list::<Approval>(&approvals)? {
            draft.approvals.load(approval.request.id, approval);
        }
        for task in row::tasks(&tasks)? {
            draft.tasks.load(task.id, task);
        }
        for row in snapshots {
            draft.snapshots.load(id(&row, 0)?, Some(value(&row, 1)?));
        }
        // Only rows that were requested by key are known not to exist: another transaction could have inserted a related row in the
        // meantime.
        draft.runs.looked_for(&self.runs);
        draft.conversations.looked_for(&self.conversations);
        draft.approvals.looked_for(&self.approvals);
        draft.tasks.looked_for(&self.tasks);
        draft.tasks.looked_for(&self.fresh);
        draft.snapshots.looked_for(&self.snapshots);
        Ok(draft)
    }
}

/// Converts ids to texts, as the tables store them.
pub(super) fn texts<'a, T: Display + 'a>(ids: impl IntoIterator<Item = &'a T>) -> Vec<String> {
    ids.into_iter().map(ToString::to_string).collect()
}

/// Parses the id in a column.
pub(super) fn id<T: FromStr<Err: Display>>(row: &Row, place: usize) -> Result<T, StoreError> {
    row::column::<&str>(row, place)?.parse().map_err(|error| StoreError::Damaged(format!("cannot read an id: {error}")))
}
