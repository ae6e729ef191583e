//! An agent: a model with tools and a conversation.

mod builder;
mod owned;
mod runs;
mod stored;

use std::sync::Arc;

use helve_core::source::ListSource;
use helve_core::{
    DynApprover, DynModel, DynTool, Extensions, GenerateOptions, IntoTool, IntoTools, Message, Mode, ModelTools, SourceState,
};
use helve_dialect::ToolTable;
use helve_tools::{Catalogue, Executor, Selection, StoreHandle, Toolkit, View, Worker};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::stored::cancel_run;
use crate::context::{Contexts, ToolCallContext};
use crate::conversation::Conversation;
use crate::error::AgentError;
use crate::options::AgentOptions;
use crate::quotes::Quotes;
use crate::strategy::Strategy;

/// Maximum number of background calls that run at once in an agent's own worker.
const WORKER_CONCURRENCY: usize = 8;

/// A model with tools and a conversation.
///
/// ```
/// use helve_agent::{Agent, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), helve_agent::AgentError> {
/// let mut agent = Agent::new(ScriptedModel::new().says("Hello!"));
/// assert_eq!(agent.run("Hi").await?.text, "Hello!");
/// # Ok(()) }
/// ```
pub struct Agent(AgentState);

/// The fields of an [`Agent`], which its runs also use.
pub(crate) struct AgentState {
    pub(crate) model: Arc<dyn DynModel>,
    pub(crate) options: AgentOptions,
    pub(crate) generate: Arc<GenerateOptions>,
    pub(crate) executor: Executor,
    catalogue: Catalogue,
    selection: Option<Selection>,
    view: View,
    pub(crate) tables: ToolTables,
    /// The system message of the last request.
    pub(crate) system: Option<Arc<Message>>,
    pub(crate) contexts: Contexts,
    pub(crate) tool_calls: ToolCallContext,
    pub(crate) approver: Option<Arc<dyn DynApprover>>,
    /// The JSON Schema that the answer must match; set during [`Agent::run_as`].
    pub(crate) output: Option<helve_core::Schema>,
    pub(crate) conversation: Conversation,
    /// The calls that appear in tool results of the conversation, which the model may quote.
    pub(crate) quotes: Quotes,
    /// The strategy that worked after the first one failed.
    pub(crate) learned: Option<Strategy>,
    /// The callback for a new value of `learned`.
    pub(crate) on_strategy: Option<OnStrategy>,
    /// The user on whose behalf the agent calls tools.
    pub(crate) user: Option<Arc<str>>,
    /// Values that tools and layers read from the call context.
    pub(crate) extensions: Extensions,
    /// The store of the agent's runs.
    pub(crate) store: Option<StoreHandle>,
    /// Whether the agent created the executor.
    owns_executor: bool,
    /// The guard that stops the worker when the agent and all its forks are dropped.
    worker: Option<Arc<DropGuard>>,
}

/// Formats the agent without messages and prompts, which may contain secrets.
impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = &self.0;
        let mut fields = f.debug_struct("Agent");
        fields.field("name", &state.options.name).field("model", &state.model.info().name).field("user", &state.user);
        fields.field("conversation", &state.conversation.id).field("tools", &state.catalogue).field("store", &state.store);
        fields.finish_non_exhaustive()
    }
}

/// A callback for the strategy that worked after the first one failed.
pub(crate) type OnStrategy = Arc<dyn Fn(Strategy) + Send + Sync>;

/// A cache of the tool table that a [`helve_dialect::Reader`] needs, for the latest list of tools.
#[derive(Default)]
pub(crate) struct ToolTables(Option<(Arc<ModelTools>, Arc<ToolTable>)>);

impl ToolTables {
    pub(crate) fn of(&mut self, tools: &Arc<ModelTools>) -> Arc<ToolTable> {
        if let Some((known, table)) = &self.0
            && Arc::ptr_eq(known, tools)
        {
            return table.clone();
        }
        let table = Arc::new(ToolTable::new(tools.iter().map(|tool| (&*tool.name, tool.parameters.value().clone()))));
        self.0 = Some((tools.clone(), table.clone()));
        table
    }
}

impl AgentState {
    /// Returns the tools of the next turn.
    pub(crate) fn toolkit(&self) -> Result<Toolkit, AgentError> {
        match &self.selection {
            Some(selection) => Ok(self.catalogue.toolkit(selection, &self.view)?),
            None => Ok(self.catalogue.everything(&self.view)),
        }
    }

    /// Starts a worker for background calls, unless the executor came with a store and so has its own workers. If there is no store, the
    /// queue is in memory.
    pub(crate) fn accept_background_calls(&mut self) {
        if self.worker.is_none() && (self.executor.store().is_none() || self.owns_executor) {
            self.start_worker();
        }
    }

    /// Starts a worker that stops with the agent, unless the agent or its `Helve` has one, or no tool runs in the background.
    pub(crate) fn start_worker(&mut self) {
        if self.worker.is_some() {
            return;
        }
        // The first turn reports missing tools.
        let Ok(toolkit) = self.toolkit() else { return };
        if !toolkit.list().any(|entry| entry.spec().rules().mode == Mode::Background) {
            return;
        }
        let store = self.executor.store().cloned().unwrap_or_else(StoreHandle::in_memory);
        // Fails if another agent has set a store on the shared executor: the worker of that agent runs the queue.
        if self.executor.use_store(store.clone()).is_ok() {
            let in_memory = store.is_in_memory();
            let worker = Worker::new(store, self.executor.clone(), self.catalogue.clone(), WORKER_CONCURRENCY);
            let (worker, stop) = (if in_memory { worker } else { worker.finishing_calls() }, CancellationToken::new());
            tokio::spawn(worker.run(stop.clone()));
            self.worker = Some(Arc::new(stop.drop_guard()));
        }
    }
}

impl Agent {
    /// Creates an agent without tools.
    #[must_use]
    pub fn new(model: impl DynModel) -> Self {
        let mut agent = Self::with_tools(model, Catalogue::new(), Executor::default(), None);
        agent.0.owns_executor = true;
        agent
    }

    /// Creates an agent with the selected tools of a catalogue, or with all of them if `selection` is `None`.
    #[must_use]
    pub fn with_tools(model: impl DynModel, catalogue: Catalogue, executor: Executor, selection: Option<Selection>) -> Self {
        let tool_calls = ToolCallContext::default();
        let mut contexts = Contexts::default();
        contexts.push(Box::new(tool_calls.clone()));
        Self(AgentState {
            model: Arc::new(model),
            options: AgentOptions::default(),
            generate: Arc::default(),
            executor,
            catalogue,
            selection,
            view: View::default(),
            tables: ToolTables::default(),
            system: None,
            contexts,
            tool_calls,
            approver: None,
            conversation: Conversation::new(),
            output: None,
            quotes: Quotes::default(),
            learned: None,
            on_strategy: None,
            user: None,
            extensions: Extensions::default(),
            store: None,
            owns_executor: false,
            worker: None,
        })
    }

    /// Returns a copy of the agent with a new conversation. The two agents share the model, the catalogue and the executor. Contexts are
    /// not copied, because they belong to one conversation.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = &self.0;
        let (catalogue, executor, selection) = (state.catalogue.clone(), state.executor.clone(), state.selection.clone());
        let Self(new) = Self::with_tools(state.model.clone(), catalogue, executor, selection).with_options(state.options.clone());
        Self(AgentState {
            view: state.view.clone(),
            approver: state.approver.clone(),
            learned: state.learned,
            on_strategy: state.on_strategy.clone(),
            user: state.user.clone(),
            extensions: state.extensions.clone(),
            store: state.store.clone(),
            owns_executor: state.owns_executor,
            worker: state.worker.clone(),
            ..new
        })
    }

    /// Adds a tool, from the next turn on. All agents that share the catalogue can use the tool.
    ///
    /// # Errors
    /// Returns [`AgentError::InvalidTool`] if the tool's name or schema is invalid, or a tool of this name is already registered.
    pub fn register_tool<Kind>(&mut self, tool: impl IntoTool<Kind>) -> Result<(), AgentError> {
        Ok(self.0.catalogue.register(tool)?)
    }

    /// Adds several tools, from the next turn on: a value whose type has `#[tools]`, or a list.
    ///
    /// # Errors
    /// Returns an error if the name or schema of a tool is invalid. In this case no tool is added.
    pub fn register_tools<Kind>(&mut self, tools: impl IntoTools<Kind>) -> Result<(), AgentError> {
        Ok(self.0.catalogue.register_all(tools)?)
    }

    /// Replaces the tools of the source named `source`, from the next turn on.
    pub fn update_tools(&mut self, source: &str, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) {
        let list = ListSource::new(source, []);
        list.set(SourceState::Ready(tools.into_iter().collect()));
        self.0.catalogue.remove_source(&helve_core::Scope::Global, &source.into());
        self.0.catalogue.add_source(Arc::new(list));
    }

    /// Returns the conversation.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.0.conversation
    }

    /// Starts a new conversation. Returns the old one.
    pub fn reset(&mut self) -> Conversation {
        self.0.tool_calls.clear();
        std::mem::take(&mut self.0.conversation)
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn DynModel> {
        &self.0.model
    }

    /// Replaces the model. The conversation stays; the learned strategy and the callback for strategies are removed.
    pub fn set_model(&mut self, model: impl DynModel) {
        self.0.model = Arc::new(model);
        (self.0.learned, self.0.on_strategy) = (None, None);
    }

    /// Returns the catalogue of the agent's tools.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// Returns the executor of the agent's calls.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// Returns the tools that the agent may use now.
    ///
    /// # Errors
    /// Returns an error if the agent's selection names an unknown tool or tool set.
    pub fn toolkit(&self) -> Result<Toolkit, AgentError> {
        self.0.toolkit()
    }

    /// Returns the latest calls of this conversation, with their results.
    #[must_use]
    pub fn tool_calls(&self) -> &ToolCallContext {
        &self.0.tool_calls
    }

    /// Returns the strategy that worked after the first one failed, or `None` if none failed.
    #[must_use]
    pub fn strategy(&self) -> Option<Strategy> {
        self.0.learned
    }
}
