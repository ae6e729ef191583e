//! The setters of an agent.

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

    /// Sets the workers of the queue, which live as long as the agent.
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

    /// Sets the approver, who decides about calls that need approval.
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

    /// Sets the first strategy, which an earlier run found to work.
    #[must_use]
    pub fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.0.learned = Some(strategy);
        self
    }

    /// Sets a function that is called when a run finds that another strategy works, so that it can be remembered for the model.
    #[must_use]
    pub fn on_strategy(mut self, notify: impl Fn(Strategy) + Send + Sync + 'static) -> Self {
        self.0.on_strategy = Some(Arc::new(notify));
        self
    }

    /// Adds a tool. All agents that share the catalogue get it.
    ///
    /// # Errors
    /// If its name or schema is invalid.
    pub fn tool<Kind>(self, tool: impl IntoTool<Kind>) -> Result<Self, AgentError> {
        self.0.catalogue.register(tool)?;
        Ok(self)
    }

    /// Adds several tools: a value whose type has `#[tools]`, or a list.
    ///
    /// # Errors
    /// If the name or schema of one is invalid.
    pub fn tools<Kind>(self, tools: impl IntoTools<Kind>) -> Result<Self, AgentError> {
        self.0.catalogue.register_all(tools)?;
        Ok(self)
    }

    /// Sets the user: tools, layers and the store see it as [`Caller::user`](helve_core::Caller::user).
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.0.user = Some(user.into());
        self
    }

    /// Adds a value for its tools and layers, such as a database pool. They get it by [`CallContext::extension`].
    ///
    /// Results of calls with such values are not cached. A value for all agents and for background calls belongs in
    /// [`ExecutorOptions::extensions`](helve_tools::ExecutorOptions::extensions).
    ///
    /// [`CallContext::extension`]: helve_core::CallContext::extension
    #[must_use]
    pub fn with_extension<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.0.extensions.insert(value);
        self
    }
}
