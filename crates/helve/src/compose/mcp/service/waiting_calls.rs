//! Keeps calls that wait until their client repeats its request with input.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use helve_core::json::canonical;
use helve_core::{ApprovalRequest, CancellationToken, Digest};
use helve_tools::{ApprovedCall, Entry};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Maximum number of waiting calls.
const MAX_CALLS: usize = 1_024;
/// Maximum size of all waiting calls, in bytes.
const MAX_BYTES: usize = 32 << 20;
/// Timeout for the client to repeat its request.
const INPUT_TIMEOUT: Duration = Duration::from_mins(15);

/// A call that waits for input.
pub(super) enum WaitingCall {
    /// The tool needs input. `held` is the call in the store, if a person approved it.
    Input { request: Box<ApprovalRequest>, held: Option<Box<ApprovedCall>> },
    /// A person approved the call, and the server behind the tool needs input. `state` is the server's request state.
    Approved { held: Box<ApprovedCall>, state: Option<Value> },
}

/// The waiting calls, by name. Names are random, because a client that knows a name can continue the call.
pub(super) struct WaitingCalls {
    /// The prefix of this server's names. It differs from the prefix of another Helve behind this server.
    prefix: String,
    all: Arc<Mutex<HashMap<String, WaitingEntry>>>,
}

impl Default for WaitingCalls {
    fn default() -> Self {
        let own = helve_mcp::random_id().unwrap_or_default();
        Self { prefix: format!("helve-call-{}-", own.get(..8).unwrap_or_default()), all: Arc::default() }
    }
}

struct WaitingEntry {
    digest: Digest,
    size: usize,
    call: WaitingCall,
    /// Ends the task that enforces the timeout.
    _taken: oneshot::Sender<()>,
}

impl WaitingCalls {
    /// Keeps a call, and returns its name.
    ///
    /// # Errors
    /// Returns the call if too many calls are waiting.
    pub fn put(&self, call: WaitingCall, digest: Digest) -> Result<String, Box<WaitingCall>> {
        let Some(name) = helve_mcp::random_id().map(|name| format!("{}{name}", self.prefix)) else { return Err(Box::new(call)) };
        let size = call.size();
        let mut all = self.all();
        if all.len() >= MAX_CALLS || all.values().map(|entry| entry.size).sum::<usize>() + size > MAX_BYTES {
            return Err(Box::new(call));
        }
        let (here, taken) = oneshot::channel();
        let cancelled = call.held().map_or_else(CancellationToken::new, |held| held.cancelled().clone());
        all.insert(name.clone(), WaitingEntry { digest, size, call, _taken: here });
        let (all, expired) = (Arc::downgrade(&self.all), name.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = taken => return,
                () = cancelled.cancelled() => {}
                () = tokio::time::sleep(INPUT_TIMEOUT) => {}
            }
            if let Some(all) = all.upgrade() {
                all.lock().remove(&expired);
            }
        });
        Ok(name)
    }

    /// Removes and returns a call, if `digest` identifies the same request.
    pub fn take(&self, name: &str, digest: Digest) -> Option<WaitingCall> {
        let mut all = self.all();
        all.get(name).filter(|entry| entry.digest == digest)?;
        all.remove(name).map(|entry| entry.call)
    }

    /// Returns whether a name has this server's prefix, whether or not the call is still there.
    pub fn is_own(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, WaitingEntry>> {
        self.all.lock()
    }
}

impl WaitingCall {
    fn held(&self) -> Option<&ApprovedCall> {
        match self {
            Self::Input { held, .. } => held.as_deref(),
            Self::Approved { held, .. } => Some(held),
        }
    }

    /// Returns the approximate size of the call, in bytes.
    fn size(&self) -> usize {
        let text = |value: &Value| value.to_string().len();
        match self {
            Self::Input { request, .. } => {
                let input = request.input.iter().map(|needed| text(&json!(needed))).sum::<usize>();
                text(&request.call.arguments) + input
            }
            Self::Approved { held, state } => text(&held.call().arguments) + state.as_ref().map_or(0, text),
        }
    }
}

/// Returns the digest that identifies a call: only a request with the same digest may continue it.
pub(super) fn call_digest(entry: &Entry, arguments: &Value) -> Digest {
    Digest::of([entry.digest().as_bytes().as_slice(), canonical(arguments).as_bytes()])
}

#[cfg(test)]
mod tests {
    use helve_core::{Caller, Schema, ToolCall, ToolSpec};

    use super::*;

    fn call(arguments: Value) -> WaitingCall {
        let spec = ToolSpec::new("tool", "A tool.", Schema::any_object()).expect("a spec");
        let request = ApprovalRequest::new(ToolCall::new("tool", arguments), &"s".into(), &spec, Caller::default(), String::new());
        WaitingCall::Input { request: Box::new(request), held: None }
    }

    #[tokio::test]
    async fn a_call_goes_on_once_with_the_same_request() {
        let waiting = WaitingCalls::default();
        let (own, other) = (Digest::of([b"own".as_slice()]), Digest::of([b"other".as_slice()]));
        let name = waiting.put(call(Value::Null), own).ok().expect("a name");
        assert!(waiting.take(&name, other).is_none());
        assert!(waiting.take("helve-call-0", own).is_none());
        assert!(waiting.take(&name, own).is_some());
        assert!(waiting.take(&name, own).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_and_there_are_not_too_many() {
        let waiting = WaitingCalls::default();
        let own = Digest::of([b"own".as_slice()]);
        let names: Vec<_> = (0..MAX_CALLS).map_while(|_| waiting.put(call(Value::Null), own).ok()).collect();
        assert_eq!(names.len(), MAX_CALLS);
        assert!(waiting.put(call(Value::Null), own).is_err());
        tokio::time::sleep(2 * INPUT_TIMEOUT).await;
        assert!(waiting.take(&names[0], own).is_none());
        assert!(waiting.put(call(Value::Null), own).is_ok());
        let large = || call(json!("x".repeat(MAX_BYTES / 3)));
        assert_eq!((0..3).filter(|_| waiting.put(large(), own).is_ok()).count(), 2, "nor too much");
    }
}
