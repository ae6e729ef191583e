//! Decides the approval request of a single call: asks the person who made the call, and shows how long the call has been running.

use std::time::{Duration, Instant};

use helve::internal::printable;
use helve::permission::{ApprovalRequest, Approver, Decision};
use helve::secret::Redactor;
use parking_lot::Mutex;

use crate::session::{approval_prompt, input_prompt};
use crate::terminal;

/// Delay before the progress line appears.
const SOON: Duration = Duration::from_secs(1);

/// The approver of `helve tools call`: the person who typed the command.
pub struct CallApprover {
    /// Whether the call was approved with `--yes`.
    yes: bool,
    redactor: Redactor,
    progress: Mutex<ProgressLine>,
}

struct ProgressLine {
    since: Instant,
    shown: bool,
}

impl CallApprover {
    pub fn new(yes: bool, redactor: &Redactor) -> Self {
        Self { yes, redactor: redactor.clone(), progress: Mutex::new(ProgressLine { since: Instant::now(), shown: false }) }
    }

    /// Shows how long the call has been running, after the first second.
    pub fn show_progress(&self, name: &str) {
        let mut progress = self.progress.lock();
        let elapsed = progress.since.elapsed();
        if elapsed >= SOON {
            progress.shown = true;
            terminal::progress(&format!("{name} … {:.0} s (Ctrl-C cancels)", elapsed.as_secs_f64()));
        }
    }

    /// Removes the progress line and restarts its clock, because the time that a person takes does not count.
    pub fn clear_progress(&self) {
        let mut progress = self.progress.lock();
        if progress.shown {
            terminal::progress("");
        }
        *progress = ProgressLine { since: Instant::now(), shown: false };
    }

    fn ask(&self, request: &ApprovalRequest) -> Decision {
        let mut read = |prompt: &str, _: &str| terminal::ask(prompt.trim_end());
        match &request.input {
            Some(needed) if terminal::can_ask() => input_prompt::ask(&request.tool, needed, &mut read),
            Some(_) => {
                let reason = printable::escape_line(&request.reason);
                terminal::note_faintly(&format!("no terminal to ask on, so the input request is declined: {reason}"));
                Decision::Deny { reason: None }
            }
            None if self.yes => Decision::Approve,
            None if terminal::can_ask() => approval_prompt::ask(request, &self.redactor, false, &mut read),
            None => Decision::Later,
        }
    }
}

impl Approver for CallApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.clear_progress();
        let decision = self.ask(request);
        self.clear_progress();
        decision
    }

    fn name(&self) -> String {
        let user = helve::internal::environment::var("USER").filter(|user| !user.is_empty());
        user.map_or_else(|| "terminal".to_owned(), |user| format!("terminal:{user}"))
    }
}
