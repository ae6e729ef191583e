//! How calls of a tool run: permission, mode, time, retries, cache, parallelism.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::permission::Permission;

/// How calls of one tool run.
#[derive(Debug, Clone, PartialEq, Eq, Default, crate::Setters)]
pub struct Rules {
    /// Whether a person is asked; a default that operators may override.
    pub permission: Permission,
    /// Whether the caller waits for the end.
    pub mode: Mode,
    /// In the background: who goes first, higher before lower. Nobody waits for ever; see [`AGEING`](crate::store::AGEING).
    pub priority: i8,
    /// In the background: how long a call waits at least before it begins.
    pub delay: Duration,
    /// How long one attempt may take; by default 30 seconds, in the background 10 minutes.
    pub timeout: Option<Duration>,
    /// How often a transient failure is tried again. Only idempotent tools are.
    pub retries: u32,
    /// Whether and how long results are kept.
    pub cache: Option<CacheRule>,
    /// Whether running the same call twice does no more than running it once.
    pub idempotent: bool,
    /// Whether no other call of the same turn may run beside it.
    pub exclusive: bool,
    /// How many calls of this tool may run at once.
    pub concurrency: Option<NonZeroU32>,
    /// Whether a call that ends well also ends the agent's run, with its text as the answer.
    pub ends_run: bool,
}

impl Rules {
    /// How long one attempt may take, whether or not someone set it.
    #[must_use]
    pub fn attempt_timeout(&self) -> Duration {
        self.timeout.unwrap_or(match self.mode {
            Mode::Inline => Duration::from_secs(30),
            Mode::Background => Duration::from_mins(10),
        })
    }
}

/// Whether the caller waits for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The caller waits.
    #[default]
    Inline,
    /// The call is accepted into the queue and the result comes later.
    Background,
}

/// How long results are kept, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRule {
    /// How long a result is good.
    pub ttl: Duration,
    /// Whether results depend on who calls, so that callers must not share them.
    pub per_caller: bool,
}
