//! Contexts: pluggable parts of the prompt that can change with the outcomes of calls.

mod tool_calls;

use std::collections::BTreeMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use helve_core::Outcome;
use serde_json::Value;

pub use self::tool_calls::{ToolCallContext, ToolCallRecord};

/// An error that a [`Context`](crate::Context) returns.
pub type ContextError = Box<dyn Error + Send + Sync>;

/// A part of the prompt that may change from turn to turn.
pub trait Context: Send + Sync + 'static {
    /// Returns the name of the context, for logs and the store.
    fn id(&self) -> &str;

    /// Returns the text to add to the prompt, or `None` to add nothing.
    ///
    /// # Errors
    /// Returns an error if the text cannot be created. The run then continues without the text.
    fn render(&self) -> Result<Option<String>, ContextError>;

    /// Returns the state to store with the run, or `None` if the context has no state.
    fn save(&self) -> Option<Value> {
        None
    }

    /// Restores the state that [`Self::save`] returned.
    ///
    /// # Errors
    /// Returns an error if the state is invalid. Helve then logs the error and keeps the context.
    fn restore(&mut self, saved: Value) -> Result<(), ContextError> {
        let _ = saved;
        Ok(())
    }

    /// Updates the context after a call has ended, was accepted into the queue, or was denied.
    ///
    /// # Errors
    /// Returns an error if the context cannot use the outcome. The other contexts still get the outcome.
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

    /// Returns the states of the contexts, by name.
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

/// Appends a paragraph to `into`.
pub(crate) fn paragraph(into: &mut String, text: &str) {
    if !into.is_empty() && !text.is_empty() {
        into.push_str("\n\n");
    }
    into.push_str(text);
}

/// Calls a method of a context. Logs the error and returns `None` if the method fails or panics.
fn guarded<T>(id: &str, action: &str, call: impl FnOnce() -> Result<T, ContextError>) -> Option<T> {
    caught(call).inspect_err(|error| log(id, action, error)).ok()
}

fn caught<T>(call: impl FnOnce() -> Result<T, ContextError>) -> Result<T, ContextError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err("the context panicked".into()))
}

fn log(id: &str, action: &str, error: &ContextError) {
    tracing::error!(context = id, %error, "cannot {action} a context");
}
