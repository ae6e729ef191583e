//! Columns of PostgreSQL rows.

use helve_core::store::Task;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::row::{Result, damaged, from_json, moment, task_state};

pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(|error| damaged(&error))
}

/// A record that is stored as JSON.
pub(super) fn value<T: DeserializeOwned>(row: &Row, index: usize) -> Result<T> {
    from_json(column(row, index)?)
}

/// Records that are stored as JSON, each in the first column.
pub(super) fn list<T: DeserializeOwned>(rows: &[Row]) -> Result<Vec<T>> {
    rows.iter().map(|row| value(row, 0)).collect()
}

/// A task, from the columns `body, state, holder, epoch, attempts, updated`. A claim is one statement that reads no JSON, so what it
/// changes is only in columns: they override the body.
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

/// Tasks, with the columns of [`task`].
pub(super) fn tasks(rows: &[Row]) -> Result<Vec<Task>> {
    rows.iter().map(task).collect()
}
