//! Conversions of columns and JSON texts, for both SQLite and PostgreSQL.

use std::fmt::Display;

use helve_core::StoreError;
use helve_core::store::TaskState;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

pub(crate) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Conflict(format!("cannot serialise a record as JSON: {error}")))
}

pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| damaged(&error))
}

/// Converts a number to a column value. Numbers that are too large become `i64::MAX`.
pub(crate) fn count<T: TryInto<i64>>(number: T) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Converts a column value, in microseconds since 1970, to a time.
pub(crate) fn moment(microseconds: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(microseconds).map_err(|error| damaged(&error))
}

pub(crate) fn task_state(name: Option<&str>) -> Result<TaskState> {
    TaskState::ALL.into_iter().find(|state| Some(state.name()) == name).ok_or_else(|| damaged(&"unknown task state"))
}

pub(crate) fn damaged(error: &dyn Display) -> StoreError {
    StoreError::Damaged(format!("cannot read a row: {error}"))
}
