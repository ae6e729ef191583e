//! `Debug` for types that may contain secrets: it shows names and ids, no arguments and no results.

use std::fmt::{Debug, Formatter, Result};

use helve_core::Outcome;

use crate::call::CallState;
use crate::catalogue::{Catalogue, Entry, Snapshot};
use crate::durable::{ApprovedCall, LeaseGuard, StoreHandle, Worker};
use crate::executor::{Executor, ExecutorOptions};
use crate::toolkit::Toolkit;

impl Debug for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Entry").field("name", self.name()).field("source", self.source()).finish_non_exhaustive()
    }
}

impl Debug for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_set().entries(self.iter().map(|entry| entry.name())).finish()
    }
}

impl Debug for Catalogue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("Catalogue").field(&self.snapshot(&crate::View::default())).finish()
    }
}

impl Debug for Toolkit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let tools: Vec<_> = self.list().map(|entry| entry.name()).collect();
        f.debug_struct("Toolkit").field("agent", &self.agent()).field("tools", &tools).finish_non_exhaustive()
    }
}

impl Debug for ExecutorOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = f.debug_struct("ExecutorOptions");
        shown.field("concurrency", &self.concurrency).field("waiting", &self.waiting).field("cache_bytes", &self.cache_bytes);
        shown.field("grace", &self.grace).field("store", &self.store).field("layers", &self.layers.len());
        shown.field("extensions", &self.extensions).finish_non_exhaustive()
    }
}

impl Debug for Executor {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Executor").field("concurrency", &self.concurrency()).field("store", &self.store()).finish_non_exhaustive()
    }
}

impl Debug for StoreHandle {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("StoreHandle").field("holder", &self.holder()).field("in_memory", &self.is_in_memory()).finish_non_exhaustive()
    }
}

impl Debug for Worker {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Debug for LeaseGuard {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("LeaseGuard").finish_non_exhaustive()
    }
}

/// An outcome without its contents.
struct OutcomeSummary<'a>(&'a Outcome);

impl Debug for OutcomeSummary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = f.debug_struct("Outcome");
        shown.field("call", &self.0.call_id).field("tool", &self.0.tool).field("success", &self.0.is_success()).finish_non_exhaustive()
    }
}

impl Debug for CallState {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Over(outcome) => f.debug_tuple("Over").field(&OutcomeSummary(outcome)).finish(),
            Self::Waiting(request) => f.debug_tuple("Waiting").field(&request.id).finish(),
        }
    }
}

impl Debug for ApprovedCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ApprovedCall").field("call", &self.call().id).field("tool", &self.call().tool).finish_non_exhaustive()
    }
}
