//! Records and rows: how one is written as the other.

use std::sync::Arc;

use helve_core::StoreError;
use helve_core::store::{Task, TaskState};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// A record as JSON.
pub(super) fn text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Conflict(format!("it cannot be written as JSON: {error}")))
}

/// A column.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, place: usize) -> Result<T, StoreError> {
    row.try_get(place).map_err(|error| damaged(&error))
}

/// A record that was written as JSON.
pub(super) fn value<T: DeserializeOwned>(row: &Row, place: usize) -> Result<T, StoreError> {
    parse(column(row, place)?)
}

/// A record as it was written.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damaged(&error))
}

/// Records that were written as JSON, each in the first column.
pub(super) fn list<T: DeserializeOwned>(rows: &[Row]) -> Result<Vec<T>, StoreError> {
    rows.iter().map(|row| value(row, 0)).collect()
}

/// A task. What a claim changes stands only in columns, because a claim is one statement that reads no JSON: they win over
/// what the text says. The columns are `body, state, holder, epoch, attempts, updated`.
pub(super) fn task(row: &Row) -> Result<Task, StoreError> {
    let mut task: Task = value(row, 0)?;
    let state: &str = column(row, 1)?;
    let state = TaskState::ALL.into_iter().find(|known| known.name() == state);
    task.state = state.ok_or_else(|| StoreError::Damaged("a task has an unknown state".to_owned()))?;
    let holder: Option<&str> = column(row, 2)?;
    task.holder = holder.map(str::parse).transpose().map_err(|error| damaged(&error))?;
    task.epoch = u64::try_from(column::<i64>(row, 3)?).map_err(|error| damaged(&error))?;
    task.attempts = u32::try_from(column::<i64>(row, 4)?).map_err(|error| damaged(&error))?;
    task.updated = moment(column(row, 5)?)?;
    Ok(task)
}

/// Tasks, with the columns of [`task`].
pub(super) fn tasks(rows: &[Row]) -> Result<Vec<Task>, StoreError> {
    rows.iter().map(task).collect()
}

/// A time in a column.
pub(super) fn moment(microseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(microseconds).map_err(|error| damaged(&error))
}

/// A number that the tables can hold.
pub(super) fn count<T: TryInto<i64>>(number: T) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Shared, as messages of a conversation are.
pub(super) fn shared<T>(values: Vec<T>) -> Vec<Arc<T>> {
    values.into_iter().map(Arc::new).collect()
}

fn damaged(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged(format!("a row cannot be read: {error}"))
}
