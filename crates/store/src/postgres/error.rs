//! Errors of a transaction, classified by whether a retry or a new connection can help.

use std::error::Error;

use deadpool_postgres::PoolError;
use helve_core::StoreError;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::tls;

/// Why a transaction was not committed.
#[derive(Debug)]
pub(super) enum TransactionError {
    /// The transaction conflicted with another one. A retry may succeed.
    Conflict(StoreError),
    /// The connection is lost.
    Disconnected(StoreError),
    /// The server rejected the transaction, or a function of the transaction failed.
    Refused(StoreError),
}

impl From<TransactionError> for StoreError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Conflict(error) | TransactionError::Disconnected(error) | TransactionError::Refused(error) => error,
        }
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<tokio_postgres::Error> for TransactionError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => judge(error),
            // Without a response from the server, the state of the transaction is unknown.
            None => Self::Disconnected(StoreError::Unavailable(with_causes(&error))),
        }
    }
}

impl From<PoolError> for TransactionError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Disconnected(Self::from(error).into()),
            PoolError::Timeout(_) => Self::Refused(StoreError::Unavailable("timed out waiting for a PostgreSQL connection".to_owned())),
            error => Self::Disconnected(StoreError::Unavailable(with_causes(&error))),
        }
    }
}

fn judge(error: &DbError) -> TransactionError {
    let code = error.code();
    let text = format!("PostgreSQL error: {} ({})", error.message(), code.code());
    if matches!(*code, SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED) {
        return TransactionError::Refused(StoreError::Damaged(text));
    }
    let severity = error.parsed_severity();
    let error = StoreError::Unavailable(text);
    if matches!(severity, Some(Severity::Fatal | Severity::Panic)) {
        return TransactionError::Disconnected(error);
    }
    match *code {
        // If two transactions insert the same row at once, the second one retries and then loads the row.
        SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE | SqlState::UNIQUE_VIOLATION => {
            TransactionError::Conflict(error)
        }
        _ => TransactionError::Refused(error),
    }
}

/// Formats an error with its causes and a hint. None of the causes contains the URL, which may contain a password.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        if let Some(hint) = tls::hint(error) {
            text.push_str("; ");
            text.push_str(hint);
        }
        cause = error.source();
    }
    text
}
