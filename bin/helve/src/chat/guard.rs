//! Keeps secrets out of what a model says while it says it: a secret may come in several pieces.

use helve::{Event, EventData, RedactedPieces, Redactor};

/// Stands between a run and whoever is told of it.
pub struct Guard {
    text: RedactedPieces,
    thoughts: RedactedPieces,
}

impl Guard {
    pub fn new(redactor: &Redactor) -> Self {
        Self { text: redactor.pieces(), thoughts: redactor.pieces() }
    }

    /// Tells an event without secrets, and before it what was held back.
    pub fn tell(&mut self, mut event: Event, tell: &mut dyn FnMut(&Event)) {
        match &mut event.data {
            EventData::TextDelta { text } => *text = self.text.push(text),
            EventData::ReasoningDelta { text } => *text = self.thoughts.push(text),
            EventData::CallDelta { .. } => {}
            _ => {
                let rest = [EventData::ReasoningDelta { text: self.thoughts.finish() }, EventData::TextDelta { text: self.text.finish() }];
                for data in rest {
                    tell_piece(&Event { data, ..event.clone() }, tell);
                }
            }
        }
        tell_piece(&event, tell);
    }
}

fn tell_piece(event: &Event, tell: &mut dyn FnMut(&Event)) {
    match &event.data {
        EventData::TextDelta { text } | EventData::ReasoningDelta { text } if text.is_empty() => {}
        _ => tell(event),
    }
}
