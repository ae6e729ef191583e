//! What goes wrong with the server, by what can be done about it.

use std::error::Error;

use deadpool_postgres::PoolError;
use helve_core::StoreError;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::tls;

/// Why a transaction was not committed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Somebody else was in the way: the same once more may go well.
    Again(StoreError),
    /// The connection is of no use any more.
    Broken(StoreError),
    /// The server, or what is there, says no.
    Refused(StoreError),
}

impl Trouble {
    /// What the caller is told.
    pub(super) fn told(self) -> StoreError {
        match self {
            Self::Again(error) | Self::Broken(error) | Self::Refused(error) => error,
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) => judge(said),
            // Neither side knows what the other heard.
            None => Self::Broken(StoreError::Unavailable(in_words(&error))),
        }
    }
}

impl From<PoolError> for Trouble {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Broken(Self::from(error).told()),
            PoolError::Timeout(_) => Self::Refused(StoreError::Unavailable("no connection to PostgreSQL is free".to_owned())),
            error => Self::Broken(StoreError::Unavailable(in_words(&error))),
        }
    }
}

fn judge(said: &DbError) -> Trouble {
    let code = said.code();
    let text = format!("PostgreSQL says: {} ({})", said.message(), code.code());
    if matches!(*code, SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED) {
        return Trouble::Refused(StoreError::Damaged(text));
    }
    let error = StoreError::Unavailable(text);
    if matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) {
        return Trouble::Broken(error);
    }
    match *code {
        // Two who made the same row at once: the second looks again, and finds it.
        SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE | SqlState::UNIQUE_VIOLATION => Trouble::Again(error),
        _ => Trouble::Refused(error),
    }
}

/// An error with its causes. None of them names the address, which may hold a password.
fn in_words(error: &dyn Error) -> String {
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
