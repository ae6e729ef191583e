//! The one path of a call, and the one place that knows the order of its concerns. Its door is `call.rs`.
//!
//! **Admit, then attempt.** `admit` decides whether a call may run and needs no tool for that: trace, validate,
//! permit, cache, defer. `attempt` runs it: cache, retry, limit, timeout, check the output, the tool.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use helve_core::store::Task;
use helve_core::{
    CallContext, DynLayer, DynTool, ErrorKind, EventData, Extensions, Grant, InputNeeded, InputResponse, Next, Outcome, Output, Permission,
    Policy, Redactor, Status, ToolCall, ToolError, call_digest,
};
use parking_lot::RwLock;

use crate::call::CallState;
use crate::catalogue::Entry;
use crate::durable::{StoreConflict, StoreHandle};
use crate::layers::cache::Cache;
use crate::layers::catch::Catch;
use crate::layers::check_output::CheckOutput;
use crate::layers::defer::Maker;
use crate::layers::limit::{Limit, Limits};
use crate::layers::permit::{Permit, PermitState};
use crate::layers::retry::Retry;
use crate::layers::timeout::Timeout;
use crate::layers::trace::Trace;
use crate::layers::{defer, secrets, trace, validate};
use crate::toolkit::{Member, Toolkit};

/// How often one call may ask; a tool that asks for ever does not end.
const MAX_REQUESTS: u32 = 10;

/// How an executor is set up.
#[derive(Clone, helve_core::Setters)]
pub struct ExecutorOptions {
    /// The operator's permission rules.
    pub policy: Policy,
    /// The secrets that must never show.
    pub redactor: Redactor,
    /// Whether the secrets that the redactor knows are written to the store as they are. By default placeholders stand for them there,
    /// which are filled in when a call is made or a run goes on.
    pub store_secrets: bool,
    /// How many calls run at once.
    pub concurrency: usize,
    /// How many more may wait for their turn; the rest is `rate_limited`.
    pub waiting: usize,
    /// How much cached results may take.
    pub cache_bytes: u64,
    /// How long a cancelled tool may tidy up before its work is dropped.
    pub grace: Duration,
    /// Where background calls are accepted; without it they are refused.
    pub store: Option<StoreHandle>,
    /// Concerns of your own, outermost first. They stand around the retries of a call, inside the cache: they see only calls that run.
    pub layers: Vec<Arc<dyn DynLayer>>,
    /// Values for the tools of all calls, such as a database pool; [`CallContext::extension`] gives them.
    pub extensions: Extensions,
}

impl ExecutorOptions {
    /// Adds a layer inside those that are there.
    #[must_use]
    pub fn layer(mut self, layer: impl DynLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            redactor: Redactor::default(),
            store_secrets: false,
            concurrency: 64,
            waiting: 1024,
            cache_bytes: 64 << 20,
            grace: Duration::from_secs(1),
            store: None,
            layers: Vec::new(),
            extensions: Extensions::default(),
        }
    }
}

/// Runs calls. Cheap to clone; clones share limits and cache.
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    trace: Trace,
    permit: Permit,
    cache: Arc<Cache>,
    concurrency: usize,
    limits: Limits,
    grace: Duration,
    store: OnceLock<StoreHandle>,
    store_secrets: bool,
    layers: Vec<Arc<dyn DynLayer>>,
    extensions: Extensions,
    chains: RwLock<Chains>,
}

/// The layers of each tool that was called. Entries come and go with live sources, and their chains go with them.
#[derive(Default)]
struct Chains {
    by_entry: HashMap<u64, (Weak<Entry>, Chain)>,
    sweep_at: usize,
}

type Chain = Arc<[Arc<dyn DynLayer>]>;

/// What is decided about a call that asks to run.
pub(crate) enum Admission {
    /// It may run now.
    Ready(Prepared),
    /// It does not run here and now: it was refused, its result is known, it is in the queue, or a person must be asked.
    Decided(CallState),
}

/// A call that was validated and permitted. It is used up by being attempted.
pub(crate) struct Prepared {
    call: ToolCall,
    entry: Arc<Entry>,
    begun: Instant,
    /// What a person answered to what the call asked before.
    given: Option<InputResponse>,
}

impl Executor {
    /// An executor.
    #[must_use]
    pub fn new(options: ExecutorOptions) -> Self {
        let executor = Self(Arc::new(Inner {
            trace: Trace::new(options.redactor),
            permit: Permit::new(options.policy),
            cache: Arc::new(Cache::new(options.cache_bytes)),
            concurrency: options.concurrency,
            limits: Limits::new(options.concurrency, options.waiting),
            grace: options.grace,
            store: OnceLock::new(),
            store_secrets: options.store_secrets,
            layers: options.layers,
            extensions: options.extensions,
            chains: RwLock::default(),
        }));
        if let Some(store) = options.store {
            executor.keep_secrets_out_of(&store);
            let _ = executor.0.store.set(store);
        }
        executor
    }

    /// The secrets that never show.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        self.0.trace.redactor()
    }

    /// Lets other permission rules hold from now on. Calls that are running go on.
    pub fn set_policy(&self, policy: Policy) {
        self.0.permit.replace(policy);
    }

    /// How many calls run at the same time.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.0.concurrency
    }

    /// What usually holds for calls of a tool by a person: rules about arguments and agents are left out.
    #[must_use]
    pub fn permission(&self, entry: &Entry) -> Permission {
        self.0.permit.usual(entry)
    }

    /// Decides whether a call may run. A grant answers the request that an earlier admission or attempt gave.
    pub(crate) async fn admit(&self, toolkit: &Toolkit, mut call: ToolCall, cx: &CallContext, mut grant: Option<Box<Grant>>) -> Admission {
        let begun = Instant::now();
        let Some(member) = toolkit.member(&call.tool) else {
            let clean = self.redactor().clean(&call.tool);
            let error = ToolError::new(ErrorKind::UnknownTool, toolkit.unknown(clean.as_deref().unwrap_or(&call.tool)));
            return Admission::Decided(CallState::Over(self.0.trace.unknown(&call, error, begun)));
        };
        let entry = &member.entry;
        let over = |call: &ToolCall, result| Admission::Decided(CallState::Over(self.0.trace.finish(call, entry, result, begun)));
        let given = grant.as_ref().and_then(|grant| grant.given.clone());
        if let Err(error) = self.check(entry, &mut call, given.as_ref()) {
            return over(&call, Err(error));
        }
        // A person who writes other arguments answers to those that were shown.
        let shown = grant.as_ref().map(|_| call_digest(&call, entry.source(), entry.spec()));
        if let Some(written) = grant.as_mut().and_then(|grant| grant.arguments.take()) {
            call.arguments = written;
            if let Err(error) = self.check(entry, &mut call, None) {
                return over(&call, Err(error));
            }
        }
        let approval = grant.as_ref().filter(|grant| grant.given.is_none()).map(|grant| grant.approval_id);
        match self.0.permit.decide(toolkit, member, &call, cx, grant.zip(shown)) {
            PermitState::Allow => {}
            PermitState::Refuse(error) => return over(&call, Err(error)),
            PermitState::Ask(request) => {
                trace::waiting(&request);
                return Admission::Decided(CallState::Waiting(request));
            }
        }
        // What a person answered is for this call alone, and must reach its tool.
        let kept = if given.is_some() || cx.is_particular() { None } else { self.0.cache.lookup(entry, &call, cx) };
        if let Some(output) = kept {
            return over(&call, Ok(output));
        }
        let maker = Maker { caller: cx.caller(), agent: toolkit.agent(), approval };
        match defer::defer(self.store(), member, &call, &maker).await {
            Ok(false) => Admission::Ready(Prepared { call, entry: entry.clone(), begun, given }),
            Ok(true) => {
                let (tool, duration) = (entry.name().clone(), begun.elapsed());
                Admission::Decided(CallState::Over(Outcome { call_id: call.id, tool, status: Status::Accepted, duration }))
            }
            Err(error) => over(&call, Err(error)),
        }
    }

    /// Whether a call is complete and fits its tool.
    fn check(&self, entry: &Entry, call: &mut ToolCall, given: Option<&InputResponse>) -> Result<(), ToolError> {
        secrets::check(call, given, self.redactor())?;
        validate::validate(entry, call, self.redactor())
    }

    /// Where background calls are accepted.
    #[must_use]
    pub fn store(&self) -> Option<&StoreHandle> {
        self.0.store.get()
    }

    /// Accepts background calls into this store from now on.
    ///
    /// # Errors
    /// If the executor has another store: calls and the runs that made them would be in two places.
    pub fn use_store(&self, store: StoreHandle) -> Result<(), StoreConflict> {
        if self.store().is_none() {
            self.keep_secrets_out_of(&store);
        }
        let is_used = |store: &StoreHandle| self.store().is_some_and(|used| used.is_same(store));
        self.0.store.set(store).or_else(|store| if is_used(&store) { Ok(()) } else { Err(StoreConflict) })
    }

    /// Lets a store hold placeholders for the secrets of this executor, which are filled in for its calls.
    pub(crate) fn keep_secrets_out_of(&self, store: &StoreHandle) {
        store.use_secrets(self.redactor(), self.0.store_secrets);
    }

    /// A call that was accepted before, checked again: what a person or an older process wrote may not fit any more, and by now a rule
    /// may forbid it, or want a person's consent that it does not have. Rules for sets look at how the call was made.
    pub(crate) fn prepare(&self, member: &Member, agent: Option<&Arc<str>>, task: &Task) -> Result<Prepared, Box<Outcome>> {
        let (entry, mut call, begun) = (&member.entry, task.call.clone(), Instant::now());
        let consent = task.consent.as_ref().is_some_and(|consent| consent.covers(&call, entry.digest()));
        let checked = self.check(entry, &mut call, None);
        match checked.and_then(|()| self.0.permit.check(member, agent.map(|agent| &**agent), &call, consent)) {
            Ok(()) => Ok(Prepared { call, entry: entry.clone(), begun, given: None }),
            Err(error) => Err(Box::new(self.0.trace.finish(&call, entry, Err(error), begun))),
        }
    }

    /// Runs a call that was admitted. What its tool wants to know is a failure where it may not ask, or asks too often.
    pub(crate) async fn attempt(&self, prepared: Prepared, cx: &CallContext, may_ask: bool) -> CallState {
        let Prepared { call, entry, begun, given } = prepared;
        let round = given.as_ref().map_or(0, |given| given.round) + 1;
        let may_ask = may_ask && round <= MAX_REQUESTS;
        let result = self.work(&call, &entry, given, cx, may_ask).await;
        if let Err(error) = &result
            && let Some(needed) = error.input().filter(|_| may_ask)
        {
            let needed = InputNeeded { round, ..needed.clone() };
            let request = self.0.permit.ask_input(&call, &entry, cx, needed);
            trace::waiting(&request);
            return CallState::Waiting(Box::new(request));
        }
        CallState::Over(self.0.trace.finish(&call, &entry, result, begun))
    }

    async fn work(
        &self,
        call: &ToolCall,
        entry: &Arc<Entry>,
        given: Option<InputResponse>,
        cx: &CallContext,
        may_ask: bool,
    ) -> Result<Output, ToolError> {
        let cx = cx.clone().for_call(call.id, self.redactor()).with_given(given).with_shared_extensions(self.0.extensions.clone());
        let cx = if may_ask { cx.asking() } else { cx };
        cx.emit(|| EventData::ToolStart { call_id: call.id, tool: entry.name().clone() });
        let chain = self.chain(entry);
        trace::watch(call, entry, run(&chain, &**entry.tool(), call, &cx)).await
    }

    /// The layers of a tool, outermost first. Layers that do not apply are left out.
    fn layers(&self, entry: &Entry) -> Vec<Arc<dyn DynLayer>> {
        let rules = entry.spec().rules();
        let mut layers = vec![Catch::layers()];
        layers.extend(Cache::layer(&self.0.cache, entry));
        layers.extend(self.0.layers.iter().cloned());
        layers.extend(Retry::layer(rules));
        layers.push(Limit::layer(&self.0.limits, entry));
        layers.push(Timeout::layer(rules, self.0.grace));
        layers.extend(CheckOutput::layer(entry, self.redactor()));
        layers.push(Catch::tool());
        layers
    }

    fn chain(&self, entry: &Arc<Entry>) -> Chain {
        if let Some((_, chain)) = self.0.chains.read().by_entry.get(&entry.id()) {
            return chain.clone();
        }
        let chain: Chain = self.layers(entry).into();
        let mut chains = self.0.chains.write();
        if chains.by_entry.len() >= chains.sweep_at {
            chains.by_entry.retain(|_, (entry, _)| entry.strong_count() > 0);
            chains.sweep_at = (chains.by_entry.len() * 2).max(256);
        }
        chains.by_entry.insert(entry.id(), (Arc::downgrade(entry), chain.clone()));
        chain
    }
}

async fn run(chain: &Chain, tool: &dyn DynTool, call: &ToolCall, cx: &CallContext) -> Result<Output, ToolError> {
    if cx.is_cancelled() {
        if let Some(given) = cx.given() {
            tool.forget(call, &given.state);
        }
        return Err(ToolError::cancelled());
    }
    Next::new(chain, tool).run(call, cx).await
}

impl Default for Executor {
    fn default() -> Self {
        Self::new(ExecutorOptions::default())
    }
}
