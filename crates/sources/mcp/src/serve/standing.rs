//! The stream of a session of the older era that belongs to no request: what happens goes there.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::stream::Out;

/// Messages that are kept for a client that comes back.
const KEPT: usize = 64;

/// What a session was told outside of its requests, and the stream that tells it while there is one.
#[derive(Debug, Default)]
pub(super) struct Standing {
    last: u64,
    /// The last message that went into a stream.
    sent: u64,
    kept: VecDeque<(u64, String)>,
    stream: Option<mpsc::Sender<Out>>,
}

impl Standing {
    /// Opens the stream, with what the client missed. A client that lost its stream says after which message; it may not know yet that it
    /// lost it, so it takes the place of the older one. Nothing where another stream is open.
    pub fn open(&mut self, after: Option<u64>, room: usize) -> Option<mpsc::Receiver<Out>> {
        if self.is_open() && after.is_none() {
            return None;
        }
        let (sender, receiver) = mpsc::channel(room.max(1) + KEPT);
        let after = after.unwrap_or(self.sent);
        for (number, text) in self.kept.iter().filter(|(number, _)| *number > after) {
            let _ = sender.try_send(Out::Note { text: text.clone(), number: Some(*number) });
        }
        self.sent = self.last;
        self.stream = Some(sender);
        Some(receiver)
    }

    /// Tells the client something. A client that reads too slowly loses its stream, and can take it up again.
    pub fn tell(&mut self, text: String) {
        // That a list is another need not be told twice to somebody who was not told yet.
        if !self.is_open() && self.kept.iter().any(|(number, kept)| *number > self.sent && *kept == text) {
            return;
        }
        self.last += 1;
        if let Some(stream) = &self.stream {
            if stream.try_send(Out::Note { text: text.clone(), number: Some(self.last) }).is_ok() {
                self.sent = self.last;
            } else {
                self.stream = None;
            }
        }
        self.kept.push_back((self.last, text));
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// The stream, while somebody reads it.
    pub fn stream(&self) -> Option<mpsc::Sender<Out>> {
        self.stream.clone().filter(|stream| !stream.is_closed())
    }

    /// Whether somebody reads the stream.
    pub fn is_open(&self) -> bool {
        self.stream().is_some()
    }

    /// Ends the stream.
    pub fn close(&mut self) {
        self.stream = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(receiver: &mut mpsc::Receiver<Out>) -> Vec<(u64, String)> {
        std::iter::from_fn(|| receiver.try_recv().ok())
            .map(|out| match out {
                Out::Note { text, number: Some(number) } => (number, text),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn what_was_missed_is_told_once() {
        let mut standing = Standing::default();
        standing.tell("a".to_owned());
        standing.tell("a".to_owned());
        let mut first = standing.open(None, 4).unwrap();
        standing.tell("b".to_owned());
        assert_eq!(heard(&mut first), [(1, "a".to_owned()), (2, "b".to_owned())]);
        assert!(standing.open(None, 4).is_none(), "one at a time");
        let mut second = standing.open(Some(1), 4).unwrap();
        assert_eq!(heard(&mut second), [(2, "b".to_owned())]);
        assert!(heard(&mut first).is_empty() && first.is_closed(), "the older one ended");
        drop(second);
        standing.tell("c".to_owned());
        let mut third = standing.open(None, 4).unwrap();
        assert_eq!(heard(&mut third), [(3, "c".to_owned())]);
    }

    #[test]
    fn who_does_not_read_loses_the_stream_and_not_the_memory() {
        let mut standing = Standing::default();
        let mut slow = standing.open(None, 1).unwrap();
        for number in 0..1_000 {
            standing.tell(number.to_string());
        }
        assert!(!standing.is_open());
        assert_eq!(heard(&mut slow).len(), 1 + KEPT);
        let mut again = standing.open(Some(0), 1).unwrap();
        assert_eq!(heard(&mut again).first(), Some(&(937, "936".to_owned())), "only the newest are kept");
    }
}
