//! Decides approval requests of an agent: asks the person at the terminal, or makes the same decision each time.

use std::sync::Arc;

use helve::permission::{ApprovalRequest, Approver, Decision};
use helve::secret::Redactor;
use parking_lot::Mutex;

use super::{approval_prompt, input_prompt};
use crate::terminal;
use crate::terminal::editor::{Editor, Input};
use crate::terminal::spinner::Spinner;

/// Asks the person at the terminal, one request at a time.
#[derive(Clone)]
pub struct TerminalApprover {
    pub editor: Arc<Mutex<Editor>>,
    /// The status line, which is hidden while the person decides.
    pub spinner: Spinner,
    pub redactor: Redactor,
}

impl Approver for TerminalApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let (approver, request) = (self.clone(), request.clone());
        // The person may take long, and other calls run meanwhile.
        let decision = tokio::task::spawn_blocking(move || approver.ask(&request)).await;
        decision.unwrap_or(Decision::Later)
    }
}

impl TerminalApprover {
    fn ask(&self, request: &ApprovalRequest) -> Decision {
        let mut editor = self.editor.lock();
        let mut read = |prompt: &str, initial: &str| if let Input::Line(line) = editor.ask(prompt, initial) { Some(line) } else { None };
        self.spinner.suspend(|| match &request.input {
            Some(needed) => {
                terminal::discard_typed();
                input_prompt::ask(&request.tool, needed, &mut read)
            }
            None => approval_prompt::ask(request, &self.redactor, true, &mut read),
        })
    }
}

/// Makes the same decision for every call.
pub struct FixedDecision(pub Decision);

impl Approver for FixedDecision {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        // `--approve yes` approves calls; it cannot provide input.
        if request.input.is_some() { Decision::Deny { reason: None } } else { self.0.clone() }
    }
}
