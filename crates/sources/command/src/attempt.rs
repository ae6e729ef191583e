//! Identifies the call and the attempt that a program belongs to, through its environment.

use std::ffi::OsString;

use helve_core::CallId;
use helve_process::Environment;

/// The id of the call.
const CALL: &str = "HELVE_CALL_ID";
/// Marks every process of one attempt. A retried call keeps its id, so the call id cannot tell attempts apart.
const ATTEMPT: &str = "HELVE_ATTEMPT_ID";
/// Variables that definitions must not set.
pub(crate) const OWN: [&str; 2] = [CALL, ATTEMPT];

/// One run of a program for a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) call: CallId,
    id: CallId,
}

impl Attempt {
    pub(crate) fn of(call: CallId) -> Self {
        Self { call, id: CallId::mint() }
    }

    /// The entry in the environment of every process of the attempt, unless the program removes it.
    pub(crate) fn marker(self) -> String {
        format!("{ATTEMPT}={}", self.id)
    }

    /// The environment of the attempt.
    pub(crate) fn variables(self, environment: &Environment) -> Vec<(OsString, OsString)> {
        let mut all = environment.variables();
        all.extend([(CALL.into(), self.call.to_string().into()), (ATTEMPT.into(), self.id.to_string().into())]);
        all
    }
}
