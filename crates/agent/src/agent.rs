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

/// Everything that a run uses.
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
    /// The schema of a typed answer.
    pub(crate) output: Option<helve_core::Schema>,
    pub(crate) conversation: Conversation,
    /// Calls in the results of the conversation, which the model may quote.
    pub(crate) quotes: Quotes,
    /// The strategy that worked after another failed.
    pub(crate) learned: Option<Strategy>,
    /// Called with `learned`.
    pub(crate) on_strategy: Option<OnStrategy>,
    /// The user on whose behalf it calls tools.
    pub(crate) user: Option<Arc<str>>,
    /// Values for its tools and layers.
    pub(crate) extensions: Extensions,
    /// The store of its runs.
    pub(crate) store: Option<StoreHandle>,
    /// Whether the agent created the executor.
    owns_executor: bool,
    /// Stops the worker of the agent and its forks when the last of them is dropped.
    worker: Option<Arc<DropGuard>>,
}

/// Omits messages and prompts.
impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = &self.0;
        let mut fields = f.debug_struct("Agent");
        fields.field("name", &state.options.name).field("model", &state.model.info().name).field("user", &state.user);
        fields.field("conversation", &state.conversation.id).field("tools", &state.catalogue).field("store", &state.store);
        fields.finish_non_exhaustive()
    }
}

/// Called when a run finds that another strategy works.
pub(crate) type OnStrategy = Arc<dyn Fn(Strategy) + Send + Sync>;

/// The table of tools for readers, built once for each list.
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
    /// The tools of the next turn.
    pub(crate) fn toolkit(&self) -> Result<Toolkit, AgentError> {
        match &self.selection {
            Some(selection) => Ok(self.catalogue.toolkit(selection, &self.view)?),
            None => Ok(self.catalogue.everything(&self.view)),
        }
    }

    /// Starts a worker for background calls, unless the executor came with a store and so has its own workers. An agent without a store
    /// has a queue in memory.
    pub(crate) fn accept_background_calls(&mut self) {
        if self.worker.is_none() && (self.executor.store().is_none() || self.owns_executor) {
            self.start_worker();
        }
    }

    /// Starts a worker that lives as long as the agent, unless the agent or its `Helve` has one.
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
        // If another agent with this executor was faster, its worker runs the queue.
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

    /// Creates an agent with the selected tools of a catalogue, or all of them.
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

    /// Returns a copy of the agent with a new conversation. Both share the model, the tools and their limits, but not the contexts, which
    /// belong to one conversation.
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

    /// Adds a tool, from the next turn on. All agents that share the catalogue get it.
    ///
    /// # Errors
    /// [`AgentError::InvalidTool`] if its name or schema is invalid, or a tool of this name is already registered.
    pub fn register_tool<Kind>(&mut self, tool: impl IntoTool<Kind>) -> Result<(), AgentError> {
        Ok(self.0.catalogue.register(tool)?)
    }

    /// Adds several tools, from the next turn on: a value whose type has `#[tools]`, or a list.
    ///
    /// # Errors
    /// If the name or schema of one is invalid. Then none is added.
    pub fn register_tools<Kind>(&mut self, tools: impl IntoTools<Kind>) -> Result<(), AgentError> {
        Ok(self.0.catalogue.register_all(tools)?)
    }

    /// Replaces the tools of a source, from the next turn on.
    pub fn update_tools(&mut self, source: &str, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) {
        let list = ListSource::new(source, []);
        list.set(SourceState::Ready(tools.into_iter().collect()));
        self.0.catalogue.remove_source(&helve_core::Scope::Global, &source.into());
        self.0.catalogue.add_source(Arc::new(list));
    }

    /// The conversation.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.0.conversation
    }

    /// Starts a new conversation, and returns the old one.
    pub fn reset(&mut self) -> Conversation {
        self.0.tool_calls.clear();
        std::mem::take(&mut self.0.conversation)
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn DynModel> {
        &self.0.model
    }

    /// Replaces the model, and keeps the conversation.
    pub fn set_model(&mut self, model: impl DynModel) {
        self.0.model = Arc::new(model);
        (self.0.learned, self.0.on_strategy) = (None, None);
    }

    /// The catalogue of its tools.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// The executor of its calls.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// The tools that it may use now.
    ///
    /// # Errors
    /// If it names an unknown tool or set.
    pub fn toolkit(&self) -> Result<Toolkit, AgentError> {
        self.0.toolkit()
    }

    /// The calls that it made, with their results.
    #[must_use]
    pub fn tool_calls(&self) -> &ToolCallContext {
        &self.0.tool_calls
    }

    /// The strategy that worked after another failed; `None` if none failed.
    #[must_use]
    pub fn strategy(&self) -> Option<Strategy> {
        self.0.learned
    }
}
