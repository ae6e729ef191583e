//! Which calls stand in the results of a conversation. Made from its messages when it is needed, and kept as they become more.

use std::sync::Arc;

use helve_core::Message;
use helve_dialect::{Call, Dialect, QuotedCalls, ToolTable};

use crate::run::result_in;

/// The calls in the results of one conversation.
#[derive(Default)]
pub(crate) struct Quotes(Option<Index>);

struct Index {
    calls: QuotedCalls,
    tools: Arc<ToolTable>,
    dialect: String,
    /// How many messages were read, and the last of them.
    read: usize,
    last: Option<Arc<Message>>,
}

/// What is known of a call that was found in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoted {
    /// It stands in no result.
    No,
    /// It stands in a result.
    Yes,
    /// There is too much in the results to compare it with.
    Perhaps,
}

impl Quotes {
    /// Whether a call that was found in text stands in a result.
    pub(crate) fn look_up(&mut self, call: &Call, said: &[Arc<Message>], dialect: Dialect, tools: &Arc<ToolTable>) -> Quoted {
        let known = self.0.take().filter(|index| index.goes_on(said, &dialect, tools));
        let index = self.0.insert(known.unwrap_or_else(|| Index::new(dialect, tools.clone())));
        index.read(said);
        match (index.calls.is_overflowed(), index.calls.holds(call)) {
            (true, _) => Quoted::Perhaps,
            (false, true) => Quoted::Yes,
            (false, false) => Quoted::No,
        }
    }
}

impl Index {
    fn new(dialect: Dialect, tools: Arc<ToolTable>) -> Self {
        let name = dialect.name().to_owned();
        Self { calls: QuotedCalls::new(dialect, tools.clone()), tools, dialect: name, read: 0, last: None }
    }

    /// Whether it was made of the beginning of these messages, and for these tools.
    fn goes_on(&self, said: &[Arc<Message>], dialect: &Dialect, tools: &Arc<ToolTable>) -> bool {
        let last = self.read.checked_sub(1).and_then(|last| said.get(last));
        let same = match (&self.last, last) {
            (Some(known), Some(last)) => Arc::ptr_eq(known, last),
            (None, None) => self.read == 0,
            _ => false,
        };
        same && Arc::ptr_eq(&self.tools, tools) && self.dialect == dialect.name()
    }

    fn read(&mut self, said: &[Arc<Message>]) {
        let new = said.get(self.read..).unwrap_or_default();
        for text in new.iter().filter_map(|message| result_in(message)) {
            self.calls.add(text);
        }
        (self.read, self.last) = (said.len(), said.last().cloned());
    }
}

/// Whether a text stands in a result as it is.
pub(crate) fn stands_in_result(text: &str, said: &[Arc<Message>]) -> bool {
    let text = text.trim();
    !text.is_empty() && said.iter().filter_map(|message| result_in(message)).any(|result| result.contains(text))
}
