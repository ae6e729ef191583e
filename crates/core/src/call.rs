//! One request to a tool, and what surrounds it: who calls, how to stop it, where progress goes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::event::{EventData, Observer};
use crate::extensions::Extensions;
use crate::ids::{CallId, ConversationId, RunId};
use crate::input::InputGiven;
use crate::json::{self, JsonLimits};
use crate::secret::Redactor;

/// One request to a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Minted by Helve, unique.
    pub id: CallId,
    /// The tool's name as the caller wrote it.
    pub tool: Arc<str>,
    /// The arguments; an object once the call is admitted.
    pub arguments: Value,
    /// The id the model gave, kept only for its own wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<Arc<str>>,
}

impl ToolCall {
    /// A call with arguments that are already a value.
    #[must_use]
    pub fn new(tool: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self { id: CallId::mint(), tool: tool.into(), arguments, model_id: None }
    }

    /// A call with arguments as JSON text; empty text means no arguments.
    ///
    /// # Errors
    /// `invalid_parameters` where the text is not JSON or passes [`JsonLimits::ARGUMENTS`].
    pub fn from_json(tool: impl Into<Arc<str>>, text: &[u8]) -> Result<Self, ToolError> {
        if text.trim_ascii().is_empty() {
            return Ok(Self::new(tool, Value::Object(Map::new())));
        }
        match json::parse(text, JsonLimits::ARGUMENTS) {
            Ok(arguments) => Ok(Self::new(tool, arguments)),
            Err(error) => Err(ToolError::invalid_parameters(format!("the arguments were not accepted: {error}"))),
        }
    }
}

/// On whose behalf a call is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Setters)]
pub struct Caller {
    /// The agent; none when a person or a program calls directly.
    pub agent: Option<Arc<str>>,
    /// The conversation it belongs to.
    pub conversation: Option<ConversationId>,
    /// The run it belongs to.
    pub run: Option<RunId>,
    /// The device that spoke.
    pub device: Option<Arc<str>>,
    /// The person, as the program knows them: an account, an e-mail address. Rows that were stored before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
}

/// What a tool and the layers around it may know and do besides the arguments. Cheap to clone.
#[derive(Clone, Default)]
pub struct CallContext {
    caller: Arc<Caller>,
    observer: Option<Arc<dyn Observer>>,
    call: Option<CallId>,
    redactor: Redactor,
    cancel: CancellationToken,
    extensions: Extensions,
    /// What the executor has for all of its calls.
    shared: Extensions,
    given: Option<Arc<InputGiven>>,
    asks: bool,
    silent: bool,
}

/// Leaves out what a person answered: it may be secret.
impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CallContext");
        shown.field("caller", &self.caller).field("call", &self.call).field("extensions", &self.extensions);
        shown.field("cancelled", &self.is_cancelled()).field("can_ask", &self.asks).finish_non_exhaustive()
    }
}

impl CallContext {
    /// A context for a caller.
    #[must_use]
    pub fn new(caller: Caller) -> Self {
        Self { caller: Arc::new(caller), ..Self::default() }
    }

    /// The same context, stopped by this token.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// The same context, whose events go to this observer.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The same context, with a value for tools and layers that know its type. It takes the place of one of the same type.
    ///
    /// What such a call gives is not cached: it may depend on the value.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// The same context, with these extensions instead of those it had.
    #[must_use]
    pub fn with_extensions(mut self, extensions: Extensions) -> Self {
        self.extensions = extensions;
        self
    }

    /// The same context, with extensions that all calls of an executor share.
    #[must_use]
    pub fn with_shared_extensions(mut self, shared: Extensions) -> Self {
        self.shared = shared;
        self
    }

    /// Whether what comes of the call depends on more than its arguments: on what the caller brought along, or on what a person answered.
    #[must_use]
    pub fn is_particular(&self) -> bool {
        !self.extensions.is_empty() || self.given.is_some()
    }

    /// The same context for a call whose tool can ask a person. The executor sets it, unless the context is [silent](Self::silent).
    #[must_use]
    pub fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Makes a tool's request for input a failure, because there is no one to answer it.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Whether what a tool wants to know is a failure.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Whether a person can be asked. Otherwise what a tool must know is a failure.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        self.asks
    }

    /// The value of a type: of this call, else of its executor.
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.extensions.get().or_else(|| self.shared.get())
    }

    /// The same context for a call that asked for something, with what a person answered.
    #[must_use]
    pub fn with_given(mut self, given: Option<InputGiven>) -> Self {
        self.given = given.map(Arc::new);
        self
    }

    /// What a person answered to what the call asked before.
    #[must_use]
    pub fn given(&self) -> Option<&InputGiven> {
        self.given.as_deref()
    }

    /// The same context for one call, whose progress is told without secrets.
    #[must_use]
    pub fn for_call(mut self, call: CallId, redactor: &Redactor) -> Self {
        self.call = Some(call);
        self.redactor = redactor.clone();
        self
    }

    /// On whose behalf.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The call that is being made; none before it is attempted.
    #[must_use]
    pub fn call_id(&self) -> Option<CallId> {
        self.call
    }

    /// Whether the work should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the work should stop; a tool has a second from then on.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send {
        self.cancel.cancelled()
    }

    /// The token that stops the work, for what has a life of its own.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Tells whoever watches how far the tool is: a fraction from 0 to 1 where known, and a few words.
    pub fn progress(&self, fraction: Option<f64>, message: impl Into<String>) {
        if let (Some(observer), Some(call_id)) = (&self.observer, self.call) {
            let message = message.into();
            let message = self.redactor.clean(&message).unwrap_or(message);
            observer.observe(EventData::ToolProgress { call_id, fraction, message });
        }
    }

    /// Tells whoever watches that something happened; the event is made only if someone does.
    pub fn emit(&self, event: impl FnOnce() -> EventData) {
        if let Some(observer) = &self.observer {
            observer.observe(event());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn callers_of_older_rows_have_no_user() {
        let old = json!({"agent": "ada", "conversation": null, "run": null, "device": null});
        let mut caller: Caller = serde_json::from_value(old.clone()).expect("an older row");
        assert_eq!((caller.user.as_deref(), json!(caller)), (None, old));
        caller.user = Some("ada@example.org".into());
        assert_eq!(serde_json::from_value::<Caller>(json!(caller)).expect("a row"), caller);
    }

    #[test]
    fn a_call_has_its_own_extensions_and_those_of_its_executor() {
        let mut shared = Extensions::default();
        shared.insert("of all");
        shared.insert(1_u8);
        let cx = CallContext::default().with_shared_extensions(shared);
        assert!(!cx.is_particular(), "what all calls have does not tell them apart");
        let cx = cx.with_extension("of this call");
        assert_eq!((cx.extension::<&str>(), cx.extension::<u8>()), (Some(&"of this call"), Some(&1)));
        assert!(cx.is_particular());
    }
}
