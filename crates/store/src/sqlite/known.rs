//! Tasks whose texts this thread wrote or read a moment ago. A task is accepted, taken and finished soon one after the other, and its
//! text stays the same: whoever finds it again need not read it again.

use std::cell::RefCell;
use std::collections::HashMap;

use helve_core::CallId;
use helve_core::store::Task;

use super::rows::ELSEWHERE;

/// So many are kept, of texts that are not longer than this.
const MOST: usize = 512;
const LONGEST: usize = 4 << 10;

/// Tasks by their ids, with the text that each was read from.
#[derive(Default)]
pub(super) struct Known(RefCell<HashMap<CallId, (String, Task)>>);

impl Known {
    /// The task that this text is, if it was seen. What becomes of a task is not in its text.
    pub(super) fn find(&self, task: CallId, text: &str) -> Option<Task> {
        let known = self.0.borrow();
        known.get(&task).filter(|(seen, _)| seen == text).map(|(_, task)| task.clone())
    }

    /// Remembers one.
    pub(super) fn keep(&self, text: &str, task: &Task) {
        // What lies elsewhere is long, though the text that says where is not.
        if text.len() > LONGEST || text.starts_with(ELSEWHERE) {
            return;
        }
        let mut known = self.0.borrow_mut();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(task.id, (text.to_owned(), task.clone()));
    }

    /// Forgets one that is over.
    pub(super) fn forget(&self, task: CallId) {
        self.0.borrow_mut().remove(&task);
    }
}
