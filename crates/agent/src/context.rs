//! Pluggable parts of the prompt, which learn from what tools give.

mod tool_calls;

use std::collections::BTreeMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use helve_core::Outcome;
use serde_json::Value;

pub use self::tool_calls::{ToolCallContext, ToolCallRecord};

/// Why a context could not do its part.
pub type ContextError = Box<dyn Error + Send + Sync>;

/// A part of the prompt. What it says may change from turn to turn.
pub trait Context: Send + Sync + 'static {
    /// Its name, for logs.
    fn id(&self) -> &str;

    /// What the model is told now; nothing where there is nothing to say.
    ///
    /// # Errors
    /// Where it cannot be said. The run goes on without it.
    fn render(&self) -> Result<Option<String>, ContextError>;

    /// What it must remember for the next process; nothing where there is nothing.
    fn save(&self) -> Option<Value> {
        None
    }

    /// Remembers what it saved.
    ///
    /// # Errors
    /// Where that cannot be understood. The context begins anew.
    fn restore(&mut self, saved: Value) -> Result<(), ContextError> {
        let _ = saved;
        Ok(())
    }

    /// A call ended, was accepted, or was denied.
    ///
    /// # Errors
    /// Where the context could not take note. Others are told all the same.
    fn on_tool_call(&mut self, outcome: &Outcome) -> Result<(), ContextError> {
        let _ = outcome;
        Ok(())
    }
}

/// The contexts of one agent. One that fails or panics disturbs no other.
#[derive(Default)]
pub(crate) struct Contexts(Vec<Box<dyn Context>>);

impl Contexts {
    pub(crate) fn push(&mut self, context: Box<dyn Context>) {
        self.0.push(context);
    }

    /// Adds what the contexts have to say, each as a paragraph.
    pub(crate) fn render(&self, into: &mut String) {
        for context in &self.0 {
            match guarded(|| context.render()) {
                Ok(Some(text)) => paragraph(into, &text),
                Ok(None) => {}
                Err(error) => tracing::error!(context = context.id(), %error, "a context could not say its part"),
            }
        }
    }

    /// What the contexts must remember, by their names.
    pub(crate) fn save(&self) -> BTreeMap<String, Value> {
        let saved = |context: &dyn Context| match guarded(|| Ok(context.save())) {
            Ok(saved) => Some((context.id().to_owned(), saved?)),
            Err(error) => {
                tracing::error!(context = context.id(), %error, "a context could not be saved");
                None
            }
        };
        self.0.iter().filter_map(|context| saved(&**context)).collect()
    }

    /// Gives the contexts back what they saved.
    pub(crate) fn restore(&mut self, mut saved: BTreeMap<String, Value>) {
        for context in &mut self.0 {
            let Some(saved) = saved.remove(context.id()) else { continue };
            if let Err(error) = guarded(|| context.restore(saved)) {
                tracing::error!(context = context.id(), %error, "a context could not be restored");
            }
        }
    }

    pub(crate) fn on_tool_call(&mut self, outcome: &Outcome) {
        for context in &mut self.0 {
            if let Err(error) = guarded(|| context.on_tool_call(outcome)) {
                tracing::error!(context = context.id(), %error, call = %outcome.call_id, "a context failed to take note of a call");
            }
        }
    }
}

/// Adds a paragraph.
pub(crate) fn paragraph(into: &mut String, text: &str) {
    if !into.is_empty() && !text.is_empty() {
        into.push_str("\n\n");
    }
    into.push_str(text);
}

fn guarded<T>(work: impl FnOnce() -> Result<T, ContextError>) -> Result<T, ContextError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("it panicked".into()))
}
