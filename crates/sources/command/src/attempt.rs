//! Which attempt of which call a program serves, as it can see in its environment.

use std::ffi::OsString;

use helve_core::CallId;
use helve_process::Environment;

/// Tells the program which call it serves.
const CALL: &str = "HELVE_CALL_ID";
/// Marks every process of one attempt. A retried call keeps its id, so that alone would not tell attempts apart.
const ATTEMPT: &str = "HELVE_ATTEMPT_ID";
/// Variables that files must not set.
pub(crate) const OWN: [&str; 2] = [CALL, ATTEMPT];

/// One start of a program for a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) call: CallId,
    id: CallId,
}

impl Attempt {
    pub(crate) fn of(call: CallId) -> Self {
        Self { call, id: CallId::mint() }
    }

    /// The entry that every process of the attempt has in its environment, unless it takes care not to.
    pub(crate) fn marker(self) -> String {
        format!("{ATTEMPT}={}", self.id)
    }

    /// Every variable of the attempt.
    pub(crate) fn variables(self, environment: &Environment) -> Vec<(OsString, OsString)> {
        let mut all = environment.variables();
        all.extend([(CALL.into(), self.call.to_string().into()), (ATTEMPT.into(), self.id.to_string().into())]);
        all
    }
}
