//! A cache of tasks that this thread has just written or read. A task is accepted, claimed and finished in quick succession, and its text
//! stays the same, so it need not be parsed again.

use std::cell::RefCell;
use std::collections::HashMap;

use helve_core::CallId;
use helve_core::store::Task;

use super::rows::OFFLOADED;

/// Maximum number of tasks.
const MAX_TASKS: usize = 512;
/// Maximum length of a task's text.
const MAX_LENGTH: usize = 4 << 10;

/// Tasks by their ids, with the text that each was read from.
#[derive(Default)]
pub(super) struct TaskCache(RefCell<HashMap<CallId, (String, Task)>>);

impl TaskCache {
    /// Returns the task with this text. The state of a task is not in its text.
    pub(super) fn get(&self, task: CallId, text: &str) -> Option<Task> {
        let tasks = self.0.borrow();
        tasks.get(&task).filter(|(known, _)| known == text).map(|(_, task)| task.clone())
    }

    pub(super) fn insert(&self, text: &str, task: &Task) {
        // A body that was offloaded is long, though the reference to it is not.
        if text.len() > MAX_LENGTH || text.starts_with(OFFLOADED) {
            return;
        }
        let mut tasks = self.0.borrow_mut();
        if tasks.len() >= MAX_TASKS {
            tasks.clear();
        }
        tasks.insert(task.id, (text.to_owned(), task.clone()));
    }

    pub(super) fn remove(&self, task: CallId) {
        self.0.borrow_mut().remove(&task);
    }
}
