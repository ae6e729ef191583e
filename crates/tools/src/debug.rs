//! `Debug` for types that may contain secrets: shows names and ids, but no arguments and no results.

use std::fmt::{Debug, Formatter, Result};

use crate::call::CallState;
use crate::catalogue::{Catalogue, Entry, Snapshot};
use crate::durable::{ApprovedCall, LeaseGuard, StoreHandle, Worker};
use crate::executor::{Executor, ExecutorOptions};
use crate::toolkit::Toolkit;

/// Implements `Debug` with the listed fields only.
macro_rules! debug_fields {
    ($($type:ident as $this:ident { $($field:literal: $value:expr),* })*) => {
        $(impl Debug for $type {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                let $this = self;
                f.debug_struct(stringify!($type))$(.field($field, &$value))*.finish_non_exhaustive()
            }
        })*
    };
}

debug_fields! {
    Entry as entry { "name": entry.name(), "source": entry.source() }
    Catalogue as catalogue { "tools": catalogue.snapshot(&crate::View::default()) }
    Toolkit as toolkit { "agent": toolkit.agent(), "tools": toolkit.list().map(|entry| entry.name()).collect::<Vec<_>>() }
    ExecutorOptions as options {
        "concurrency": options.concurrency, "waiting": options.waiting, "cache_bytes": options.cache_bytes, "grace": options.grace,
        "store": options.store, "layers": options.layers.len(), "extensions": options.extensions
    }
    Executor as executor { "concurrency": executor.concurrency(), "store": executor.store() }
    StoreHandle as store { "holder": store.holder(), "in_memory": store.is_in_memory() }
    Worker as _worker {}
    LeaseGuard as _lease {}
    ApprovedCall as approved { "call": approved.call().id, "tool": approved.call().tool }
}

impl Debug for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_set().entries(self.iter().map(|entry| entry.name())).finish()
    }
}

impl Debug for CallState {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Over(outcome) => {
                let mut fields = f.debug_struct("Over");
                fields.field("call", &outcome.call_id).field("tool", &outcome.tool).field("success", &outcome.is_success());
                fields.finish_non_exhaustive()
            }
            Self::Waiting(request) => f.debug_tuple("Waiting").field(&request.id).finish(),
        }
    }
}
