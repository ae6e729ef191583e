//! Marks the processes of an attempt with environment variables, so that Helve can find them.

use std::ffi::OsString;

use helve_core::CallId;
use helve_process::Environment;

/// The variable with the id of the call.
const CALL: &str = "HELVE_CALL_ID";
/// The variable that marks every process of one attempt. The call id cannot distinguish attempts, because a retried call keeps its id.
const ATTEMPT: &str = "HELVE_ATTEMPT_ID";
/// The variables that only Helve sets.
pub(crate) const OWN: [&str; 2] = [CALL, ATTEMPT];

/// One attempt at a call: one execution of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) call: CallId,
    id: CallId,
}

impl Attempt {
    pub(crate) fn of(call: CallId) -> Self {
        Self { call, id: CallId::mint() }
    }

    /// Returns the environment entry, `NAME=value`, that every process of the attempt inherits unless the program removes it.
    pub(crate) fn marker(self) -> String {
        format!("{ATTEMPT}={}", self.id)
    }

    /// Returns the environment variables of the program.
    pub(crate) fn variables(self, environment: &Environment) -> Vec<(OsString, OsString)> {
        let mut all = environment.variables();
        all.extend([(CALL.into(), self.call.to_string().into()), (ATTEMPT.into(), self.id.to_string().into())]);
        all
    }
}
