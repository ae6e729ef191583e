//! Rules of a tool, which say how its calls run: permission, mode, timeout, retries, cache, concurrency.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::permission::Permission;

/// How calls to one tool run.
#[derive(Debug, Clone, PartialEq, Eq, Default, crate::Setters)]
pub struct Rules {
    /// Whether calls need approval. Operators can override this setting.
    pub permission: Permission,
    /// Whether the caller waits for the result.
    pub mode: Mode,
    /// Priority in the background queue, from -10 to 10: higher runs first. Waiting calls gain rank; see [`AGEING`](crate::store::AGEING).
    pub priority: i8,
    /// Minimum delay before a background call starts.
    pub delay: Duration,
    /// Timeout of one attempt. By default 30 seconds, in the background 10 minutes.
    pub timeout: Option<Duration>,
    /// Maximum number of retries after a transient error. Only idempotent tools are retried.
    pub retries: u32,
    /// Whether and for how long results are cached.
    pub cache: Option<CacheRule>,
    /// Whether repeating a call has the same effect as running it once.
    pub idempotent: bool,
    /// Whether a call must run alone, without other calls of the same turn.
    pub exclusive: bool,
    /// Maximum number of concurrent calls to the tool.
    pub concurrency: Option<NonZeroU32>,
    /// Whether a successful call ends the agent's run, with the call's text as the answer.
    pub ends_run: bool,
}

impl Rules {
    /// Returns the timeout of one attempt, or its default.
    #[must_use]
    pub fn attempt_timeout(&self) -> Duration {
        self.timeout.unwrap_or(match self.mode {
            Mode::Inline => Duration::from_secs(30),
            Mode::Background => Duration::from_mins(10),
        })
    }
}

/// Whether the caller waits for the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The caller waits for the result.
    #[default]
    Inline,
    /// The call goes into the queue, and the caller gets the result later.
    Background,
}

/// How long results are cached, and whether callers share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRule {
    /// How long a result is valid.
    pub ttl: Duration,
    /// Whether results depend on the caller. If so, callers do not share them.
    pub per_caller: bool,
}
