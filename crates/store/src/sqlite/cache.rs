//! A cache of tasks that this thread has just written or read. A task is accepted, claimed and finished in quick succession, and its
//! JSON text stays the same, so the cache saves parsing it again.

use std::cell::RefCell;
use std::collections::HashMap;

use helve_core::CallId;
use helve_core::store::Task;

use super::rows::OFFLOADED;

/// Maximum number of cached tasks.
const MAX_TASKS: usize = 512;
/// Maximum length of the JSON text of a cached task, in bytes.
const MAX_LENGTH: usize = 4 << 10;

/// Tasks by id, each with the JSON text that it was parsed from.
#[derive(Default)]
pub(super) struct TaskCache(RefCell<HashMap<CallId, (String, Task)>>);

impl TaskCache {
    /// Returns the cached task if it was parsed from the same text. The text does not contain the state of the task.
    pub(super) fn get(&self, task: CallId, text: &str) -> Option<Task> {
        let tasks = self.0.borrow();
        tasks.get(&task).filter(|(known, _)| known == text).map(|(_, task)| task.clone())
    }

    pub(super) fn insert(&self, text: &str, task: &Task) {
        // An offloaded body is long, although the reference to it is short.
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
