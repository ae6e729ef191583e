//! The built-in context: tells the model about background tools and running background calls, and records the latest calls.

use std::collections::VecDeque;
use std::sync::Arc;

use helve_core::{CallId, Mode, Outcome, Status};
use helve_dialect::Language;
use helve_tools::Toolkit;
use parking_lot::Mutex;

use super::{Context, ContextError};

/// Maximum number of remembered calls.
const MAX_CALLS: usize = 100;
/// Maximum size of a remembered result, in bytes.
const MAX_TEXT: usize = 1000;

/// A call and its result so far.
#[derive(Debug, Clone)]
pub struct ToolCallRecord {
    /// The call id, which is also the task id of a background call.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// Whether the call is a background call without a result yet.
    pub pending: bool,
    /// Whether the call succeeded; `false` while `pending` is set.
    pub success: bool,
    /// The first 1000 bytes of the result.
    pub text: Arc<str>,
}

/// A context that tells the model how to use background tools, and which background calls are still running.
///
/// [`Self::definitions`] and [`Self::calls`] are for programs only: the model gets tools and results with each request.
#[derive(Debug, Clone, Default)]
pub struct ToolCallContext(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    language: Language,
    background: Vec<Arc<str>>,
    definitions: Vec<Arc<str>>,
    calls: VecDeque<ToolCallRecord>,
}

impl ToolCallContext {
    /// Creates a context that writes its text in `language`.
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self(Arc::new(Mutex::new(State { language, ..State::default() })))
    }

    /// Sets the tools that the model may call.
    pub fn set_definitions(&self, toolkit: &Toolkit) {
        let mut state = self.0.lock();
        state.definitions = toolkit.list().map(|entry| entry.model_name().clone()).collect();
        state.background =
            toolkit.list().filter(|entry| entry.spec().rules().mode == Mode::Background).map(|entry| entry.model_name().clone()).collect();
    }

    /// Returns the names of the tools that the model may call.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<str>> {
        self.0.lock().definitions.clone()
    }

    /// Returns the latest 100 calls with their results so far, oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<ToolCallRecord> {
        self.0.lock().calls.iter().cloned().collect()
    }

    /// Returns the background calls that have not ended.
    #[must_use]
    pub fn pending(&self) -> Vec<ToolCallRecord> {
        self.0.lock().calls.iter().filter(|call| call.pending).cloned().collect()
    }

    /// Removes all calls, for a new conversation.
    pub(crate) fn clear(&self) {
        self.0.lock().calls.clear();
    }
}

impl Context for ToolCallContext {
    fn id(&self) -> &str {
        "tool_calls"
    }

    fn render(&self) -> Result<Option<String>, ContextError> {
        let state = self.0.lock();
        let pending: Vec<&ToolCallRecord> = state.calls.iter().filter(|call| call.pending).collect();
        if state.background.is_empty() && pending.is_empty() {
            return Ok(None);
        }
        let (names, chinese) = (state.background.join(", "), state.language == Language::Chinese);
        let mut text = String::new();
        if !names.is_empty() {
            text = if chinese {
                format!(
                    "后台工具：{names}。调用它们会立即返回 accepted 和任务编号，真正的结果稍后才到。不要等待，也不要重复同一个调用；其他工具会直接返回结果。"
                )
            } else {
                format!(
                    "Background tools: {names}. A call to one of them returns `accepted` and a task id at once; its result comes later. Do not wait for it and do not repeat the call. All other tools return their result directly."
                )
            };
        }
        for call in pending {
            let line = if chinese {
                format!("仍在运行：{}，任务 {}", call.tool, call.call_id)
            } else {
                format!("Still running: {}, task {}", call.tool, call.call_id)
            };
            text = if text.is_empty() { line } else { format!("{text}\n{line}") };
        }
        Ok(Some(text))
    }

    fn on_tool_call(&mut self, outcome: &Outcome) -> Result<(), ContextError> {
        let mut state = self.0.lock();
        let text = outcome.text();
        let text = text[..text.floor_char_boundary(MAX_TEXT)].into();
        let pending = matches!(outcome.status, Status::Accepted);
        let record = ToolCallRecord { call_id: outcome.call_id, tool: outcome.tool.clone(), pending, success: outcome.is_success(), text };
        match state.calls.iter_mut().rev().find(|call| call.pending && call.call_id == outcome.call_id) {
            Some(known) => *known = record,
            None => state.calls.push_back(record),
        }
        if state.calls.len() > MAX_CALLS {
            state.calls.pop_front();
        }
        Ok(())
    }
}
