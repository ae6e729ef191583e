//! Builder methods of an agent.

use std::sync::Arc;

use helve_core::{Approver, IntoTool, IntoTools};
use helve_tools::Selection;
use tokio_util::sync::DropGuard;

use super::Agent;
use crate::context::Context;
use crate::conversation::Conversation;
use crate::error::AgentError;
use crate::options::{AgentOptions, RunLimits};
use crate::strategy::Strategy;

impl Agent {
    /// Sets all options, including those that `system_prompt`, `named` and `limits` set.
    #[must_use]
    pub fn with_options(mut self, options: AgentOptions) -> Self {
        self.0.generate = Arc::new(options.generate_options.clone());
        self.0.options = options;
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.0.options.system_prompt = Some(prompt.into());
        self
    }

    /// Sets the guard that stops the workers of the queue when the last agent with this guard is dropped.
    #[doc(hidden)]
    #[must_use]
    pub fn with_workers(mut self, workers: Option<Arc<DropGuard>>) -> Self {
        self.0.worker = workers;
        self
    }

    /// Sets the name, for events, errors and permission rules.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.0.options.name = Some(name.into());
        self
    }

    /// Sets the limits of a run.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.0.options.limits = limits;
        self
    }

    /// Restricts the agent to some tools of its catalogue.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.0.selection = Some(selection);
        self
    }

    /// Sets the conversation.
    #[must_use]
    pub fn with_conversation(mut self, conversation: Conversation) -> Self {
        self.0.conversation = conversation;
        self
    }

    /// Sets the approver, which decides about calls that need approval.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver) -> Self {
        self.0.approver = Some(Arc::new(approver));
        self
    }

    /// Adds a context, a dynamic part of the prompt.
    #[must_use]
    pub fn with_context(mut self, context: impl Context) -> Self {
        self.0.contexts.push(Box::new(context));
        self
    }

    /// Sets the strategy that runs try first, such as one that [`Self::on_strategy`] reported.
    #[must_use]
    pub fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.0.learned = Some(strategy);
        self
    }

    /// Sets a callback for the strategy that worked after the first one failed. The callback can remember the strategy for the model.
    #[must_use]
    pub fn on_strategy(mut self, notify: impl Fn(Strategy) + Send + Sync + 'static) -> Self {
        self.0.on_strategy = Some(Arc::new(notify));
        self
    }

    /// Adds a tool. All agents that share the catalogue can use the tool.
    ///
    /// # Errors
    /// Returns an error if the tool's name or schema is invalid, or a tool of this name is already registered.
    pub fn tool<Kind>(self, tool: impl IntoTool<Kind>) -> Result<Self, AgentError> {
        self.0.catalogue.register(tool)?;
        Ok(self)
    }

    /// Adds several tools: a value whose type has `#[tools]`, or a list.
    ///
    /// # Errors
    /// Returns an error if the name or schema of a tool is invalid. In this case no tool is added.
    pub fn tools<Kind>(self, tools: impl IntoTools<Kind>) -> Result<Self, AgentError> {
        self.0.catalogue.register_all(tools)?;
        Ok(self)
    }

    /// Sets the user, which tools, layers and the store see as [`Caller::user`](helve_core::Caller::user).
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.0.user = Some(user.into());
        self
    }

    /// Adds a value, such as a database pool, that tools and layers get from [`CallContext::extension`].
    ///
    /// An agent with such a value does not cache results of calls. A value for all agents and for background calls belongs in
    /// [`ExecutorOptions::extensions`](helve_tools::ExecutorOptions::extensions).
    ///
    /// [`CallContext::extension`]: helve_core::CallContext::extension
    #[must_use]
    pub fn with_extension<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.0.extensions.insert(value);
        self
    }
}
