//! How calls of a tool run: permission, mode, timeout, retries, cache, concurrency.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::permission::Permission;

/// How calls of one tool run.
#[derive(Debug, Clone, PartialEq, Eq, Default, crate::Setters)]
pub struct Rules {
    /// Whether calls need approval. Operators can override it.
    pub permission: Permission,
    /// Whether the caller waits for the result.
    pub mode: Mode,
    /// Priority in the background, from -10 to 10: higher runs first. No call waits forever; see [`AGEING`](crate::store::AGEING).
    pub priority: i8,
    /// Minimum delay of a call in the background.
    pub delay: Duration,
    /// Timeout of one attempt; by default 30 seconds, in the background 10 minutes.
    pub timeout: Option<Duration>,
    /// Maximum number of retries after a transient error. Only idempotent tools are retried.
    pub retries: u32,
    /// Whether and how long results are cached.
    pub cache: Option<CacheRule>,
    /// Whether making the same call twice has the same effect as making it once.
    pub idempotent: bool,
    /// Whether no other call of the same turn may run at the same time.
    pub exclusive: bool,
    /// Maximum number of concurrent calls of the tool.
    pub concurrency: Option<NonZeroU32>,
    /// Whether a successful call ends the agent's run, with its text as the answer.
    pub ends_run: bool,
}

impl Rules {
    /// Timeout of one attempt, with the default.
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
    /// The caller waits for the result.
    #[default]
    Inline,
    /// The call goes into the queue, and the result comes later.
    Background,
}

/// How long results are cached, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRule {
    /// How long a result is valid.
    pub ttl: Duration,
    /// Whether results depend on the caller, so that callers must not share them.
    pub per_caller: bool,
}
