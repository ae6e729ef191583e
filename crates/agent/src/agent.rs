//! An agent: a model, tools, and what was said so far.

mod runs;
mod set_up;

use std::sync::Arc;

use helve_core::source::ListSource;
use helve_core::{
    DynApprover, DynModel, DynTool, Extensions, GenerateOptions, IntoTool, IntoTools, Message, Mode, ModelTools, SourceState,
};
use helve_dialect::ToolTable;
use helve_tools::{Catalogue, Executor, Selection, StoreHandle, Toolkit, View, Worker};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::context::{Contexts, ToolCallContext};
use crate::conversation::Conversation;
use crate::error::AgentError;
use crate::options::AgentOptions;
use crate::quotes::Quotes;
use crate::strategy::Strategy;

/// How many background calls an agent runs at once that works on its queue itself.
const AT_ONCE: usize = 8;

/// A model with tools, and what was said so far.
///
/// ```
/// use helve_agent::{Agent, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), helve_agent::AgentError> {
/// let mut agent = Agent::new(ScriptedModel::new().says("Hello!"));
/// assert_eq!(agent.run("Hi").await?.text, "Hello!");
/// # Ok(()) }
/// ```
pub struct Agent(Parts);

/// What a run is driven with.
pub(crate) struct Parts {
    pub(crate) model: Arc<dyn DynModel>,
    pub(crate) options: AgentOptions,
    pub(crate) generate: Arc<GenerateOptions>,
    pub(crate) executor: Executor,
    catalogue: Catalogue,
    selection: Option<Selection>,
    view: View,
    pub(crate) tables: Tables,
    pub(crate) system: Option<Arc<Message>>,
    pub(crate) contexts: Contexts,
    pub(crate) tool_calls: ToolCallContext,
    pub(crate) approver: Option<Arc<dyn DynApprover>>,
    /// What the answer must fit, where a type was asked for.
    pub(crate) output: Option<helve_core::Schema>,
    pub(crate) conversation: Conversation,
    /// Calls in the results of the conversation, which a model may quote.
    pub(crate) quotes: Quotes,
    /// The strategy that worked after another did not.
    pub(crate) learned: Option<Strategy>,
    /// Is told of it.
    pub(crate) on_strategy: Option<OnStrategy>,
    /// On whose behalf it calls tools.
    pub(crate) user: Option<Arc<str>>,
    /// What its tools and layers are given.
    pub(crate) extensions: Extensions,
    /// Where its runs are recorded.
    pub(crate) store: Option<StoreHandle>,
    /// Whether the executor is the agent's own.
    owns_executor: bool,
    /// Stops the worker that the agent and its forks have for background calls.
    worker: Option<Arc<DropGuard>>,
}

/// Leaves out what was said and what it is told.
impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = &self.0;
        let mut shown = f.debug_struct("Agent");
        shown.field("name", &parts.options.name).field("model", &parts.model.info().name).field("user", &parts.user);
        shown.field("conversation", &parts.conversation.id).field("tools", &parts.catalogue).field("store", &parts.store);
        shown.finish_non_exhaustive()
    }
}

/// Is told when a run finds that another strategy works.
pub(crate) type OnStrategy = Arc<dyn Fn(Strategy) + Send + Sync>;

/// What readers must know of tools, made once for each list.
#[derive(Default)]
pub(crate) struct Tables(Option<(Arc<ModelTools>, Arc<ToolTable>)>);

impl Tables {
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

impl Parts {
    /// The tools of the next turn.
    pub(crate) fn toolkit(&self) -> Result<Toolkit, AgentError> {
        match &self.selection {
            Some(selection) => Ok(self.catalogue.toolkit(selection, &self.view)?),
            None => Ok(self.catalogue.everything(&self.view)),
        }
    }

    /// Background calls need a queue and someone who works on it. An agent without a store has a queue in memory. An executor that
    /// came with a store has its own workers.
    pub(crate) fn accept_background_calls(&mut self) {
        if self.worker.is_none() && (self.executor.store().is_none() || self.owns_executor) {
            self.work_on_queue();
        }
    }

    /// Works on the queue for as long as the agent lives, unless it or its `Helve` does already.
    pub(crate) fn work_on_queue(&mut self) {
        if self.worker.is_some() {
            return;
        }
        // Tools that are not there are the first turn's concern.
        let Ok(toolkit) = self.toolkit() else { return };
        if !toolkit.list().any(|entry| entry.spec().rules().mode == Mode::Background) {
            return;
        }
        let store = self.executor.store().cloned().unwrap_or_else(StoreHandle::in_memory);
        // Another agent with this executor may have been faster, and works on the queue then.
        if self.executor.use_store(store.clone()).is_ok() {
            let in_memory = store.is_in_memory();
            let worker = Worker::new(store, self.executor.clone(), self.catalogue.clone(), AT_ONCE);
            let (worker, stop) = (if in_memory { worker } else { worker.finishing_calls() }, CancellationToken::new());
            tokio::spawn(worker.run(stop.clone()));
            self.worker = Some(Arc::new(stop.drop_guard()));
        }
    }
}

impl Agent {
    pub(crate) fn own_store(&self) -> Option<&StoreHandle> {
        self.0.store.as_ref()
    }

    pub(crate) fn parts(&mut self) -> &mut Parts {
        &mut self.0
    }

    /// An agent without tools.
    #[must_use]
    pub fn new(model: impl DynModel) -> Self {
        let mut agent = Self::with_tools(model, Catalogue::new(), Executor::default(), None);
        agent.0.owns_executor = true;
        agent
    }

    /// An agent with the tools of a catalogue: those it selects, or all.
    #[must_use]
    pub fn with_tools(model: impl DynModel, catalogue: Catalogue, executor: Executor, selection: Option<Selection>) -> Self {
        let tool_calls = ToolCallContext::default();
        let mut contexts = Contexts::default();
        contexts.push(Box::new(tool_calls.clone()));
        Self(Parts {
            model: Arc::new(model),
            options: AgentOptions::default(),
            generate: Arc::default(),
            executor,
            catalogue,
            selection,
            view: View::default(),
            tables: Tables::default(),
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

    /// Another agent like this one, with a conversation of its own. Both share the model, the tools and their limits; contexts
    /// belong to one conversation and are not shared.
    #[must_use]
    pub fn fork(&self) -> Self {
        let parts = &self.0;
        let (catalogue, executor, selection) = (parts.catalogue.clone(), parts.executor.clone(), parts.selection.clone());
        let mut agent = Self::with_tools(parts.model.clone(), catalogue, executor, selection).with_options(parts.options.clone());
        (agent.0.view, agent.0.learned) = (parts.view.clone(), parts.learned);
        agent.0.approver.clone_from(&parts.approver);
        (agent.0.user, agent.0.extensions) = (parts.user.clone(), parts.extensions.clone());
        agent.0.store.clone_from(&parts.store);
        agent.0.on_strategy.clone_from(&parts.on_strategy);
        (agent.0.owns_executor, agent.0.worker) = (parts.owns_executor, parts.worker.clone());
        agent
    }

    /// Adds a tool, for the next turn on. Where agents share a catalogue, all of them have it.
    ///
    /// # Errors
    /// [`AgentError::InvalidTool`] if its name or schema cannot be used, or a tool of this name was registered before.
    pub fn register_tool<Kind>(&mut self, tool: impl IntoTool<Kind>) -> Result<(), AgentError> {
        Ok(self.0.catalogue.register(tool)?)
    }

    /// Adds several tools, for the next turn on: a value whose type has `#[tools]`, or a list.
    ///
    /// # Errors
    /// Where the name or schema of one cannot be used. Then none is added.
    pub fn register_tools<Kind>(&mut self, tools: impl IntoTools<Kind>) -> Result<(), AgentError> {
        Ok(self.0.catalogue.register_all(tools)?)
    }

    /// Puts these tools in the place of those that came from a source before, for the next turn on.
    pub fn update_tools(&mut self, source: &str, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) {
        let list = ListSource::new(source, []);
        list.set(SourceState::Ready(tools.into_iter().collect()));
        self.0.catalogue.remove_source(&helve_core::Scope::Global, &source.into());
        self.0.catalogue.add_source(Arc::new(list));
    }

    /// What was said so far.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.0.conversation
    }

    /// Goes on with a conversation.
    pub fn set_conversation(&mut self, conversation: Conversation) {
        self.0.conversation = conversation;
    }

    /// Begins another conversation, and gives back the last.
    pub fn reset(&mut self) -> Conversation {
        self.0.tool_calls.clear();
        std::mem::take(&mut self.0.conversation)
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn DynModel> {
        &self.0.model
    }

    /// Puts another model in its place; the conversation goes on.
    pub fn set_model(&mut self, model: impl DynModel) {
        self.0.model = Arc::new(model);
        (self.0.learned, self.0.on_strategy) = (None, None);
    }

    /// All tools it could use.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// Runs its calls.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// The tools it may use now.
    ///
    /// # Errors
    /// Where it names a tool or set that is not there.
    pub fn toolkit(&self) -> Result<Toolkit, AgentError> {
        self.0.toolkit()
    }

    /// The calls it made and what came of them.
    #[must_use]
    pub fn tool_calls(&self) -> &ToolCallContext {
        &self.0.tool_calls
    }

    /// How calls are carried since another way did not work; nothing where that never happened.
    #[must_use]
    pub fn strategy(&self) -> Option<Strategy> {
        self.0.learned
    }
}
