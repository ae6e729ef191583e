//! Which rows a transaction needs, and how they are locked and loaded in one trip.
//!
//! Rows are locked in one order, so that two transactions do not wait for each other: runs, conversations, requests, tasks, and
//! by id within each. What a row belongs to never changes, so the run of a task is found before the task is locked.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use helve_core::{ApprovalId, CallId, ConversationId, HolderId, RunId, StoreError};
use tokio_postgres::Row;

use super::draft::Draft;
use super::record::{self, value};
use super::session::{Session, Step, values};
use super::trouble::Trouble;

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
/// Comes last, so that the time is one at which all locks were held.
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_backend_pid()";

/// Which rows a transaction needs. The runs of tasks and requests come along by themselves.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    pub(super) runs: BTreeSet<RunId>,
    /// Runs that come with their conversation and their open requests.
    pub(super) stepping: BTreeSet<RunId>,
    pub(super) snapshots: BTreeSet<RunId>,
    pub(super) conversations: BTreeSet<ConversationId>,
    pub(super) approvals: BTreeSet<ApprovalId>,
    pub(super) tasks: BTreeSet<CallId>,
    /// Tasks that are taken to be new without a look. Where one is not, the server says so, and the next try looks.
    pub(super) fresh: BTreeSet<CallId>,
    /// Processes of which it must be known whether they are gone.
    pub(super) holders: BTreeSet<HolderId>,
}

impl Keys {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
            && self.stepping.is_empty()
            && self.snapshots.is_empty()
            && self.conversations.is_empty()
            && self.approvals.is_empty()
            && self.tasks.is_empty()
            && self.holders.is_empty()
    }

    /// These and others.
    pub(super) fn add(&mut self, more: Self) {
        self.runs.extend(more.runs);
        self.stepping.extend(more.stepping);
        self.snapshots.extend(more.snapshots);
        self.conversations.extend(more.conversations);
        self.approvals.extend(more.approvals);
        self.tasks.extend(more.tasks);
        self.fresh.extend(more.fresh);
        self.holders.extend(more.holders);
    }

    /// Takes nothing for new any more.
    pub(super) fn look(&mut self) {
        self.tasks.append(&mut self.fresh);
    }

    /// Begins a transaction, locks the rows and loads them.
    pub(super) async fn load(&self, session: &Session) -> Result<Draft, Trouble> {
        let mut steps = vec![Step("BEGIN", values![])];
        // Each table has its place, and an empty answer where nothing is wanted of it.
        let mut places = [None; 6];
        let mut want = |place: usize, wanted: bool, step: &dyn Fn() -> Step| {
            if wanted {
                places[place] = Some(steps.len());
                steps.push(step());
            }
        };
        let related = !(self.runs.is_empty() && self.tasks.is_empty() && self.approvals.is_empty());
        want(0, related, &|| Step(RUNS, values![texts(&self.runs), texts(&self.tasks), texts(&self.approvals)]));
        let related = !(self.conversations.is_empty() && self.stepping.is_empty());
        want(1, related, &|| Step(CONVERSATIONS, values![texts(&self.conversations), texts(&self.stepping)]));
        let related = !(self.approvals.is_empty() && self.stepping.is_empty());
        want(2, related, &|| Step(APPROVALS, values![texts(&self.approvals), texts(&self.stepping)]));
        want(3, !self.tasks.is_empty(), &|| Step(TASKS, values![texts(&self.tasks)]));
        want(4, !self.snapshots.is_empty(), &|| Step(SNAPSHOTS, values![texts(&self.snapshots)]));
        want(5, !self.holders.is_empty(), &|| Step(ALIVE, values![texts(&self.holders)]));
        steps.push(Step(NOW, values![]));
        let mut answers = session.pipeline(steps).await?;
        let now = answers.pop().and_then(|rows| rows.into_iter().next());
        let now = now.ok_or_else(|| StoreError::Unavailable("the server does not tell the time".to_owned()))?;
        let tables = places.map(|place| place.and_then(|place| answers.get_mut(place)).map(std::mem::take).unwrap_or_default());
        Ok(self.draft(&now, tables)?)
    }

    fn draft(&self, now: &Row, tables: [Vec<Row>; 6]) -> Result<Draft, StoreError> {
        let [runs, conversations, approvals, tasks, snapshots, alive] = tables;
        let (now, backend) = (record::moment(record::column(now, 0)?)?, record::column(now, 1)?);
        let mut draft = Draft::new(now, backend, self, alive.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?);
        for row in runs {
            let run: helve_core::store::RunRecord = value(&row, 0)?;
            draft.runs.found(run.id, run);
        }
        for row in conversations {
            let conversation: helve_core::store::ConversationRecord = value(&row, 0)?;
            draft.conversations.found(conversation.id, conversation);
        }
        for row in approvals {
            let approval: helve_core::store::Approval = value(&row, 0)?;
            draft.approvals.found(approval.request.id, approval);
        }
        for row in tasks {
            let task = record::task(&row)?;
            draft.tasks.found(task.id, task);
        }
        for row in snapshots {
            draft.snapshots.found(id(&row, 0)?, Some(value(&row, 1)?));
        }
        // Only what was named is known not to exist: a row that came along could have been made in between.
        draft.runs.looked_for(&self.runs);
        draft.conversations.looked_for(&self.conversations);
        draft.approvals.looked_for(&self.approvals);
        draft.tasks.looked_for(&self.tasks);
        draft.tasks.looked_for(&self.fresh);
        draft.snapshots.looked_for(&self.snapshots);
        Ok(draft)
    }
}

/// Ids as the tables have them.
pub(super) fn texts<'a, T: Display + 'a>(ids: impl IntoIterator<Item = &'a T>) -> Vec<String> {
    ids.into_iter().map(ToString::to_string).collect()
}

/// An id in a column.
pub(super) fn id<T: FromStr<Err: Display>>(row: &Row, place: usize) -> Result<T, StoreError> {
    record::column::<&str>(row, place)?.parse().map_err(|error| StoreError::Damaged(format!("an id cannot be read: {error}")))
}
