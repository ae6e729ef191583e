//! Contexts: pluggable parts of the prompt, which learn from tool results.

mod tool_calls;

use std::collections::BTreeMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use helve_core::Outcome;
use serde_json::Value;

pub use self::tool_calls::{ToolCallContext, ToolCallRecord};

/// An error of a context.
pub type ContextError = Box<dyn Error + Send + Sync>;

/// A part of the prompt that may change from turn to turn.
pub trait Context: Send + Sync + 'static {
    /// The name, for logs and the store.
    fn id(&self) -> &str;

    /// The text for the prompt; `None` if there is nothing to say.
    ///
    /// # Errors
    /// If there is no text because of an error. The run continues without it.
    fn render(&self) -> Result<Option<String>, ContextError>;

    /// The state to store; `None` if there is none.
    fn save(&self) -> Option<Value> {
        None
    }

    /// Restores the state that [`Self::save`] returned.
    ///
    /// # Errors
    /// If the state is invalid. The context then starts empty.
    fn restore(&mut self, saved: Value) -> Result<(), ContextError> {
        let _ = saved;
        Ok(())
    }

    /// Called when a call has ended, was accepted, or was denied.
    ///
    /// # Errors
    /// If the context cannot use the outcome. Other contexts are called all the same.
    fn on_tool_call(&mut self, outcome: &Outcome) -> Result<(), ContextError> {
        let _ = outcome;
        Ok(())
    }
}

/// The contexts of one agent. If one fails or panics, the others still work.
#[derive(Default)]
pub(crate) struct Contexts(Vec<Box<dyn Context>>);

impl Contexts {
    pub(crate) fn push(&mut self, context: Box<dyn Context>) {
        self.0.push(context);
    }

    /// Appends the texts of the contexts, each as a paragraph.
    pub(crate) fn render(&self, into: &mut String) {
        for context in &self.0 {
            if let Some(Some(text)) = guarded(context.id(), "render", || context.render()) {
                paragraph(into, &text);
            }
        }
    }

    /// The states of the contexts, by name.
    pub(crate) fn save(&self) -> BTreeMap<String, Value> {
        let saved = |context: &dyn Context| guarded(context.id(), "save", || Ok(context.save())).flatten();
        self.0.iter().filter_map(|context| Some((context.id().to_owned(), saved(&**context)?))).collect()
    }

    /// Restores the states of the contexts.
    pub(crate) fn restore(&mut self, mut saved: BTreeMap<String, Value>) {
        for context in &mut self.0 {
            let id = context.id().to_owned();
            if let Some(saved) = saved.remove(&id) {
                guarded(&id, "restore", || context.restore(saved));
            }
        }
    }

    pub(crate) fn on_tool_call(&mut self, outcome: &Outcome) {
        for context in &mut self.0 {
            if let Err(error) = caught(|| context.on_tool_call(outcome)) {
                log(context.id(), "update", &error);
            }
        }
    }
}

/// Appends a paragraph.
pub(crate) fn paragraph(into: &mut String, text: &str) {
    if !into.is_empty() && !text.is_empty() {
        into.push_str("\n\n");
    }
    into.push_str(text);
}

/// Calls a context. Returns `None`, and logs the error, if it fails.
fn guarded<T>(id: &str, action: &str, call: impl FnOnce() -> Result<T, ContextError>) -> Option<T> {
    caught(call).inspect_err(|error| log(id, action, error)).ok()
}

fn caught<T>(call: impl FnOnce() -> Result<T, ContextError>) -> Result<T, ContextError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err("it panicked".into()))
}

fn log(id: &str, action: &str, error: &ContextError) {
    tracing::error!(context = id, %error, "cannot {action} a context");
}
