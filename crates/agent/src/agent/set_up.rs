//! How an agent is set up: what it is told, with whom it speaks, what it may use.

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
    /// The same agent with these options, in the place of all that `system_prompt`, `named` and `limits` set before.
    #[must_use]
    pub fn with_options(mut self, options: AgentOptions) -> Self {
        self.0.generate = Arc::new(options.generate_options.clone());
        self.0.options = options;
        self
    }

    /// The same agent, which is told this before anyone speaks.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.0.options.system_prompt = Some(prompt.into());
        self
    }

    /// The same agent, for which someone works on the queue for as long as it lives.
    #[doc(hidden)]
    #[must_use]
    pub fn with_workers(mut self, workers: Option<Arc<DropGuard>>) -> Self {
        self.0.worker = workers;
        self
    }

    /// The same agent, under this name in events, errors and permission rules.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.0.options.name = Some(name.into());
        self
    }

    /// The same agent, whose runs stop at these limits.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.0.options.limits = limits;
        self
    }

    /// The same agent, which only has these tools of its catalogue.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.0.selection = Some(selection);
        self
    }

    /// The same agent, which goes on with a conversation.
    #[must_use]
    pub fn with_conversation(mut self, conversation: Conversation) -> Self {
        self.0.conversation = conversation;
        self
    }

    /// The same agent, whose calls that must be confirmed are shown to this person.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver) -> Self {
        self.0.approver = Some(Arc::new(approver));
        self
    }

    /// The same agent, with one more part of its prompt.
    #[must_use]
    pub fn with_context(mut self, context: impl Context) -> Self {
        self.0.contexts.push(Box::new(context));
        self
    }

    /// The same agent, which begins with this strategy, because an earlier run found that it works.
    #[must_use]
    pub fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.0.learned = Some(strategy);
        self
    }

    /// Tells when a run finds that another strategy works, so that it can be remembered for the model.
    #[must_use]
    pub fn on_strategy(mut self, learned: impl Fn(Strategy) + Send + Sync + 'static) -> Self {
        self.0.on_strategy = Some(Arc::new(learned));
        self
    }

    /// The same agent, with one more tool. Where agents share a catalogue, all of them have it.
    ///
    /// # Errors
    /// Where its name or schema cannot be used.
    pub fn tool<Kind>(self, tool: impl IntoTool<Kind>) -> Result<Self, AgentError> {
        self.0.catalogue.register(tool)?;
        Ok(self)
    }

    /// The same agent, with more tools: a value whose type has `#[tools]`, or a list.
    ///
    /// # Errors
    /// Where the name or schema of one cannot be used.
    pub fn tools<Kind>(self, tools: impl IntoTools<Kind>) -> Result<Self, AgentError> {
        self.0.catalogue.register_all(tools)?;
        Ok(self)
    }

    /// The same agent, which speaks with this person: [`Caller::user`](helve_core::Caller::user) says so to tools and layers, and in the
    /// store.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.0.user = Some(user.into());
        self
    }

    /// The same agent, with a value for its tools and layers, such as a database pool; [`CallContext::extension`] gives it to them.
    ///
    /// Results of calls with extensions of an agent are not cached. A value for the calls of all agents, and for those in the background,
    /// belongs into [`ExecutorOptions::extensions`](helve_tools::ExecutorOptions::extensions).
    ///
    /// [`CallContext::extension`]: helve_core::CallContext::extension
    #[must_use]
    pub fn with_extension<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.0.extensions.insert(value);
        self
    }
}
