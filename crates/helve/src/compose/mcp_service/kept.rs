//! Calls of clients of the newer era that go on with another request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use helve_core::json::canonical;
use helve_core::{ApprovalRequest, CancellationToken, Digest};
use helve_tools::{ApprovedCall, Entry};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// How many calls may wait for their clients.
const MAX_KEPT: usize = 1_024;
/// How much they may take together.
const MAX_BYTES: usize = 32 << 20;
/// How long a client has to come back.
const PATIENCE: Duration = Duration::from_mins(15);

/// What is known of a call that goes on.
pub(super) enum Kept {
    /// Its tool asked for something. A call that a person approved is held in the record.
    Asked { request: Box<ApprovalRequest>, held: Option<ApprovedCall> },
    /// A person approved this call, and the server behind it asked for something. What the server wants to hear again goes along.
    Approved { held: ApprovedCall, state: Option<Value> },
}

/// Calls that go on, by names that nobody can guess: whoever knows one may go on with its call.
pub(super) struct AllKept {
    /// How the names of this server begin; there may be another Helve behind it.
    prefix: String,
    all: Arc<Mutex<HashMap<String, One>>>,
}

impl Default for AllKept {
    fn default() -> Self {
        let own = helve_mcp::unguessable().unwrap_or_default();
        Self { prefix: format!("helve-call-{}-", own.get(..8).unwrap_or_default()), all: Arc::default() }
    }
}

struct One {
    belongs: Digest,
    size: usize,
    kept: Kept,
    /// Nobody need look after it any more.
    _taken: oneshot::Sender<()>,
}

impl AllKept {
    /// Keeps a call for a while, and gives its name.
    ///
    /// # Errors
    /// Gives the call back where there is too much already.
    pub fn put(&self, kept: Kept, belongs: Digest) -> Result<String, Box<Kept>> {
        let Some(name) = helve_mcp::unguessable().map(|name| format!("{}{name}", self.prefix)) else { return Err(Box::new(kept)) };
        let size = kept.size();
        let mut all = self.all();
        if all.len() >= MAX_KEPT || all.values().map(|one| one.size).sum::<usize>() + size > MAX_BYTES {
            return Err(Box::new(kept));
        }
        let (here, taken) = oneshot::channel();
        let cancelled = kept.held().map_or_else(CancellationToken::new, |held| held.cancelled().clone());
        all.insert(name.clone(), One { belongs, size, kept, _taken: here });
        let (all, forgotten) = (Arc::downgrade(&self.all), name.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = taken => return,
                () = cancelled.cancelled() => {}
                () = tokio::time::sleep(PATIENCE) => {}
            }
            if let Some(all) = all.upgrade() {
                all.lock().remove(&forgotten);
            }
        });
        Ok(name)
    }

    /// Takes a call back, for a request that is the same as before.
    pub fn take(&self, name: &str, belongs: Digest) -> Option<Kept> {
        let mut all = self.all();
        all.get(name).filter(|one| one.belongs == belongs)?;
        all.remove(name).map(|one| one.kept)
    }

    /// Whether a name is one of this server's, known or not.
    pub fn is_own(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, One>> {
        self.all.lock()
    }
}

impl Kept {
    fn held(&self) -> Option<&ApprovedCall> {
        match self {
            Self::Asked { held, .. } => held.as_ref(),
            Self::Approved { held, .. } => Some(held),
        }
    }

    /// About how much memory it takes.
    fn size(&self) -> usize {
        let text = |value: &Value| value.to_string().len();
        match self {
            Self::Asked { request, .. } => {
                let asked = request.input.iter().map(|needed| text(&json!(needed))).sum::<usize>();
                text(&request.call.arguments) + asked
            }
            Self::Approved { held, state } => text(&held.call().arguments) + state.as_ref().map_or(0, text),
        }
    }
}

/// What the request must be that goes on with a call.
pub(super) fn belonging(entry: &Entry, arguments: &Value) -> Digest {
    Digest::of([entry.digest().as_bytes().as_slice(), canonical(arguments).as_bytes()])
}

#[cfg(test)]
mod tests {
    use helve_core::{Caller, Schema, ToolCall, ToolSpec};

    use super::*;

    fn asked(arguments: Value) -> Kept {
        let spec = ToolSpec::new("tool", "A tool.", Schema::any_object()).expect("a spec");
        let request = ApprovalRequest::new(ToolCall::new("tool", arguments), &"s".into(), &spec, Caller::default(), String::new());
        Kept::Asked { request: Box::new(request), held: None }
    }

    #[tokio::test]
    async fn a_call_goes_on_once_with_the_same_request() {
        let kept = AllKept::default();
        let (own, other) = (Digest::of([b"own".as_slice()]), Digest::of([b"other".as_slice()]));
        let name = kept.put(asked(Value::Null), own).ok().expect("a name");
        assert!(kept.take(&name, other).is_none());
        assert!(kept.take("helve-call-0", own).is_none());
        assert!(kept.take(&name, own).is_some());
        assert!(kept.take(&name, own).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_and_there_are_not_too_many() {
        let kept = AllKept::default();
        let own = Digest::of([b"own".as_slice()]);
        let names: Vec<_> = (0..MAX_KEPT).map_while(|_| kept.put(asked(Value::Null), own).ok()).collect();
        assert_eq!(names.len(), MAX_KEPT);
        assert!(kept.put(asked(Value::Null), own).is_err());
        tokio::time::sleep(2 * PATIENCE).await;
        assert!(kept.take(&names[0], own).is_none());
        assert!(kept.put(asked(Value::Null), own).is_ok());
        let large = || asked(json!("x".repeat(MAX_BYTES / 3)));
        assert_eq!((0..3).filter(|_| kept.put(large(), own).is_ok()).count(), 2, "nor too much");
    }
}
