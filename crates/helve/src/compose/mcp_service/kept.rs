//! Calls of clients of the newer era that go on with another request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use helve_core::json::canonical;
use helve_core::{Digest, Question, ToolCall};
use helve_tools::Entry;
use serde_json::Value;
use tokio::time::Instant;

/// How many calls may wait for their clients.
const MAX_KEPT: usize = 1_024;
/// How long a client has to come back.
const PATIENCE: Duration = Duration::from_mins(15);

/// What is known of a call that goes on.
pub(super) enum Kept {
    /// Its tool asked for something.
    Asked(Box<Question>),
    /// A person approved this call, and the server behind it asked for something. What the server wants to hear again goes along.
    Approved(ToolCall, Option<Value>),
}

/// Calls that go on, by names that nobody can guess: whoever knows one may go on with its call.
#[derive(Default)]
pub(super) struct AllKept(Mutex<HashMap<String, (Instant, Digest, Kept)>>);

impl AllKept {
    /// Keeps a call for a while, and gives its name; nothing where there are too many.
    pub fn put(&self, kept: Kept, belongs: Digest) -> Option<String> {
        let name = format!("helve-call-{}", helve_mcp::unguessable()?);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (since, ..)| since.elapsed() < PATIENCE);
        if all.len() >= MAX_KEPT {
            return None;
        }
        all.insert(name.clone(), (Instant::now(), belongs, kept));
        Some(name)
    }

    /// Takes a call back, for a request that is the same as before.
    pub fn take(&self, name: &str, belongs: Digest) -> Option<Kept> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).filter(|(since, to, _)| *to == belongs && since.elapsed() < PATIENCE)?;
        all.remove(name).map(|(.., kept)| kept)
    }
}

/// What the request must be that goes on with a call.
pub(super) fn belonging(entry: &Entry, arguments: &Value) -> Digest {
    Digest::of([entry.digest().as_bytes().as_slice(), canonical(arguments).as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approved() -> Kept {
        Kept::Approved(ToolCall::new("tool", Value::Null), None)
    }

    #[test]
    fn a_call_goes_on_once_with_the_same_request() {
        let kept = AllKept::default();
        let (own, other) = (Digest::of([b"own".as_slice()]), Digest::of([b"other".as_slice()]));
        let name = kept.put(approved(), own).expect("a name");
        assert!(kept.take(&name, other).is_none());
        assert!(kept.take("helve-call-0", own).is_none());
        assert!(kept.take(&name, own).is_some());
        assert!(kept.take(&name, own).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_and_there_are_not_too_many() {
        let kept = AllKept::default();
        let own = Digest::of([b"own".as_slice()]);
        let names: Vec<_> = (0..MAX_KEPT).map_while(|_| kept.put(approved(), own)).collect();
        assert_eq!(names.len(), MAX_KEPT);
        assert!(kept.put(approved(), own).is_none());
        tokio::time::advance(PATIENCE).await;
        assert!(kept.take(&names[0], own).is_none());
        assert!(kept.put(approved(), own).is_some());
    }
}
