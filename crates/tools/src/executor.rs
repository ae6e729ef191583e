//! The path of every call, and the only place that defines the order of the layers. The entry point is `call.rs`.
//!
//! `admit` decides whether a call may run, without running its tool: trace, validate, permit, cache, defer. Then `attempt` runs the call:
//! cache, retry, limit, timeout, check the output, the tool.

mod chains;
mod options;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use helve_core::store::Task;
use helve_core::{
    CallContext, DynLayer, DynTool, ErrorKind, EventData, Extensions, Grant, InputNeeded, InputResponse, Next, Outcome, Output, Permission,
    Policy, Redactor, Status, ToolCall, ToolError, call_digest,
};

use self::chains::{Chain, Chains};
pub use self::options::ExecutorOptions;
use crate::call::CallState;
use crate::catalogue::Entry;
use crate::durable::{StoreConflict, StoreHandle};
use crate::layers::cache::Cache;
use crate::layers::catch::Catch;
use crate::layers::check_output::CheckOutput;
use crate::layers::limit::{ConcurrencyLimits, Limit};
use crate::layers::permit::{Permit, PermitState};
use crate::layers::retry::Retry;
use crate::layers::timeout::Timeout;
use crate::layers::trace::Trace;
use crate::layers::{defer, secrets, trace, validate};
use crate::toolkit::{Member, Toolkit};

/// Maximum number of times that one call can request input, so that every call ends.
const MAX_INPUT_REQUESTS: u32 = 10;

/// Runs calls. Cheap to clone; clones share limits and cache.
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    trace: Trace,
    permit: Permit,
    cache: Arc<Cache>,
    concurrency: usize,
    limits: ConcurrencyLimits,
    grace: Duration,
    store: OnceLock<StoreHandle>,
    store_secrets: bool,
    layers: Vec<Arc<dyn DynLayer>>,
    extensions: Extensions,
    chains: Chains,
}

/// The result of admitting a call.
pub(crate) enum Admission {
    /// The call may run now.
    Ready(Prepared),
    /// The call does not run now: it was rejected, its result is cached, it is in the queue, or it needs approval.
    Decided(CallState),
}

/// A validated and permitted call, ready for one attempt.
pub(crate) struct Prepared {
    call: ToolCall,
    entry: Arc<Entry>,
    started: Instant,
    /// The person's response to the previous input request.
    given: Option<InputResponse>,
}

impl Executor {
    /// Creates an executor.
    #[must_use]
    pub fn new(options: ExecutorOptions) -> Self {
        let executor = Self(Arc::new(Inner {
            trace: Trace::new(options.redactor),
            permit: Permit::new(options.policy),
            cache: Arc::new(Cache::new(options.cache_bytes)),
            concurrency: options.concurrency,
            limits: ConcurrencyLimits::new(options.concurrency, options.waiting),
            grace: options.grace,
            store: OnceLock::new(),
            store_secrets: options.store_secrets,
            layers: options.layers,
            extensions: options.extensions,
            chains: Chains::default(),
        }));
        if let Some(store) = options.store {
            executor.keep_secrets_out_of(&store);
            let _ = executor.0.store.set(store);
        }
        executor
    }

    /// Returns the redactor that removes secrets.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        self.0.trace.redactor()
    }

    /// Replaces the permission rules. Running calls are not affected.
    pub fn set_policy(&self, policy: Policy) {
        self.0.permit.replace(policy);
    }

    /// Returns the maximum number of concurrent calls.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.0.concurrency
    }

    /// Returns the permission of a tool for a person who calls it, without rules about arguments and agents.
    #[must_use]
    pub fn permission(&self, entry: &Entry) -> Permission {
        self.0.permit.usual(entry)
    }

    /// Decides whether a call may run. A grant resumes a call that waited for a person.
    pub(crate) async fn admit(&self, toolkit: &Toolkit, mut call: ToolCall, cx: &CallContext, mut grant: Option<Box<Grant>>) -> Admission {
        let started = Instant::now();
        let Some(member) = toolkit.member(&call.tool) else {
            let clean = self.redactor().clean(&call.tool);
            let error = ToolError::new(ErrorKind::UnknownTool, toolkit.unknown(clean.as_deref().unwrap_or(&call.tool)));
            return Admission::Decided(CallState::Over(self.0.trace.unknown(&call, error, started)));
        };
        let entry = &member.entry;
        let over = |call: &ToolCall, result| Admission::Decided(CallState::Over(self.0.trace.finish(call, entry, result, started)));
        let given = grant.as_ref().and_then(|grant| grant.given.clone());
        if let Err(error) = self.check(entry, &mut call, given.as_ref()) {
            return over(&call, Err(error));
        }
        // The decision is bound to the arguments that the person saw, not to those that the person wrote.
        let shown = grant.as_ref().map(|_| call_digest(&call, entry.source(), entry.spec()));
        if let Some(edited) = grant.as_mut().and_then(|grant| grant.arguments.take()) {
            call.arguments = edited;
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
        // A person's input is for this call only, and must reach the tool, so the cache does not apply.
        let cached = if given.is_some() || cx.is_particular() { None } else { self.0.cache.lookup(entry, &call, cx) };
        if let Some(output) = cached {
            return over(&call, Ok(output));
        }
        match defer::defer(self.store(), toolkit, member, &call, cx, approval).await {
            Ok(false) => Admission::Ready(Prepared { call, entry: entry.clone(), started, given }),
            Ok(true) => {
                let (tool, duration) = (entry.name().clone(), started.elapsed());
                Admission::Decided(CallState::Over(Outcome { call_id: call.id, tool, status: Status::Accepted, duration }))
            }
            Err(error) => over(&call, Err(error)),
        }
    }

    /// Checks that all secrets of a call are known and that its arguments are valid.
    fn check(&self, entry: &Entry, call: &mut ToolCall, given: Option<&InputResponse>) -> Result<(), ToolError> {
        secrets::check(call, given, self.redactor())?;
        validate::validate(entry, call, self.redactor())
    }

    /// Returns the store for background calls and approval requests.
    #[must_use]
    pub fn store(&self) -> Option<&StoreHandle> {
        self.0.store.get()
    }

    /// Sets the store for background calls and approval requests.
    ///
    /// # Errors
    /// If the executor already has another store: calls and their runs would be in different stores.
    pub fn use_store(&self, store: StoreHandle) -> Result<(), StoreConflict> {
        if self.store().is_none() {
            self.keep_secrets_out_of(&store);
        }
        let is_used = |store: &StoreHandle| self.store().is_some_and(|used| used.is_same(store));
        self.0.store.set(store).or_else(|store| if is_used(&store) { Ok(()) } else { Err(StoreConflict) })
    }

    /// Makes a store save placeholders instead of this executor's secrets, unless the option `store_secrets` is set.
    pub(crate) fn keep_secrets_out_of(&self, store: &StoreHandle) {
        store.use_secrets(self.redactor(), self.0.store_secrets);
    }

    /// Checks a call from the queue again: its arguments may have become invalid, or a rule may now deny it or require an approval that it
    /// does not have. Rules for tool sets apply to the sets at the time of the call.
    pub(crate) fn prepare(&self, member: &Member, agent: Option<&Arc<str>>, task: &Task) -> Result<Prepared, Box<Outcome>> {
        let (entry, mut call, started) = (&member.entry, task.call.clone(), Instant::now());
        let consent = task.consent.as_ref().is_some_and(|consent| consent.covers(&call, entry.digest()));
        let checked = self.check(entry, &mut call, None);
        match checked.and_then(|()| self.0.permit.check(member, agent.map(|agent| &**agent), &call, consent)) {
            Ok(()) => Ok(Prepared { call, entry: entry.clone(), started, given: None }),
            Err(error) => Err(Box::new(self.0.trace.finish(&call, entry, Err(error), started))),
        }
    }

    /// Runs an admitted call. If the tool requests input although the call may not ask, or has asked too often, the call fails.
    pub(crate) async fn attempt(&self, prepared: Prepared, cx: &CallContext, may_ask: bool) -> CallState {
        let Prepared { call, entry, started, given } = prepared;
        let round = given.as_ref().map_or(0, |given| given.round) + 1;
        let may_ask = may_ask && round <= MAX_INPUT_REQUESTS;
        let result = self.run(&call, &entry, given, cx, may_ask).await;
        if let Err(error) = &result
            && let Some(needed) = error.input().filter(|_| may_ask)
        {
            let needed = InputNeeded { round, ..needed.clone() };
            let request = self.0.permit.ask_input(&call, &entry, cx, needed);
            trace::waiting(&request);
            return CallState::Waiting(Box::new(request));
        }
        CallState::Over(self.0.trace.finish(&call, &entry, result, started))
    }

    async fn run(
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
        let chain = self.0.chains.get(entry, || self.layers(entry));
        trace::watch(call, entry, run(&chain, &**entry.tool(), call, &cx)).await
    }

    /// Returns the layers that apply to a tool, outermost first.
    fn layers(&self, entry: &Entry) -> Vec<Arc<dyn DynLayer>> {
        let rules = entry.spec().rules();
        let mut layers = vec![Catch::layer("a layer")];
        layers.extend(Cache::layer(&self.0.cache, entry));
        layers.extend(self.0.layers.iter().cloned());
        layers.extend(Retry::layer(rules));
        layers.push(Limit::layer(&self.0.limits, entry));
        layers.push(Timeout::layer(rules, self.0.grace));
        layers.extend(CheckOutput::layer(entry, self.redactor()));
        layers.push(Catch::layer("the tool"));
        layers
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
