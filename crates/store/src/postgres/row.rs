//! Reads columns of PostgreSQL rows.

use helve_core::store::Task;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::row::{Result, damaged, from_json, moment, task_state};

pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(|error| damaged(&error))
}

/// Returns a record that is stored as JSON.
pub(super) fn value<T: DeserializeOwned>(row: &Row, index: usize) -> Result<T> {
    from_json(column(row, index)?)
}

/// Returns the records that are stored as JSON in the first column of each row.
pub(super) fn list<T: DeserializeOwned>(rows: &[Row]) -> Result<Vec<T>> {
    rows.iter().map(|row| value(row, 0)).collect()
}

/// Returns a task from the columns `body, state, holder, epoch, attempts, updated`. The columns override the body, because a claim
/// changes only columns.
pub(super) fn task(row: &Row) -> Result<Task> {
    let mut task: Task = value(row, 0)?;
    task.state = task_state(column(row, 1)?)?;
    let holder: Option<&str> = column(row, 2)?;
    task.holder = holder.map(str::parse).transpose().map_err(|error| damaged(&error))?;
    task.epoch = u64::try_from(column::<i64>(row, 3)?).map_err(|error| damaged(&error))?;
    task.attempts = u32::try_from(column::<i64>(row, 4)?).map_err(|error| damaged(&error))?;
    task.updated = moment(column(row, 5)?)?;
    Ok(task)
}

/// Returns tasks from rows with the columns of [`task`].
pub(super) fn tasks(rows: &[Row]) -> Result<Vec<Task>> {
    rows.iter().map(task).collect()
}
