//! The own stream of a legacy session, for messages that belong to no request.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::response::OutgoingMessage;

/// Maximum number of messages that are kept for a client that resumes the stream.
const MAX_RECENT: usize = 64;

/// The messages of a session that belong to no request, and the stream that sends them while it is open.
#[derive(Debug, Default)]
pub(super) struct SessionStream {
    last: u64,
    /// The number of the last message that was sent on a stream.
    sent: u64,
    recent: VecDeque<(u64, String)>,
    stream: Option<mpsc::Sender<OutgoingMessage>>,
}

impl SessionStream {
    /// Opens the stream, and sends the messages that the client missed. If the client resumes a stream, `after` is the number of the last
    /// message that it received, and the new stream replaces the old one. Otherwise returns `None` if a stream is already open.
    pub fn open(&mut self, after: Option<u64>, room: usize) -> Option<mpsc::Receiver<OutgoingMessage>> {
        if self.is_open() && after.is_none() {
            return None;
        }
        let (sender, receiver) = mpsc::channel(room.max(1) + MAX_RECENT);
        let after = after.unwrap_or(self.sent);
        for (number, text) in self.recent.iter().filter(|(number, _)| *number > after) {
            let _ = sender.try_send(OutgoingMessage::Notification { text: text.clone(), number: Some(*number) });
        }
        self.sent = self.last;
        self.stream = Some(sender);
        Some(receiver)
    }

    /// Sends a message. Closes the stream if the client reads too slowly; the client can resume it.
    pub fn send(&mut self, text: String) {
        // Does not queue the same notification twice.
        if !self.is_open() && self.recent.iter().any(|(number, recent)| *number > self.sent && *recent == text) {
            return;
        }
        self.last += 1;
        if let Some(stream) = &self.stream {
            if stream.try_send(OutgoingMessage::Notification { text: text.clone(), number: Some(self.last) }).is_ok() {
                self.sent = self.last;
            } else {
                self.stream = None;
            }
        }
        self.recent.push_back((self.last, text));
        if self.recent.len() > MAX_RECENT {
            self.recent.pop_front();
        }
    }

    /// Returns the sender of the stream, if the stream is open.
    pub fn stream(&self) -> Option<mpsc::Sender<OutgoingMessage>> {
        self.stream.clone().filter(|stream| !stream.is_closed())
    }

    /// Returns whether the stream is open.
    pub fn is_open(&self) -> bool {
        self.stream().is_some()
    }

    /// Closes the stream.
    pub fn close(&mut self) {
        self.stream = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(receiver: &mut mpsc::Receiver<OutgoingMessage>) -> Vec<(u64, String)> {
        std::iter::from_fn(|| receiver.try_recv().ok())
            .map(|out| match out {
                OutgoingMessage::Notification { text, number: Some(number) } => (number, text),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn what_was_missed_is_told_once() {
        let mut session = SessionStream::default();
        session.send("a".to_owned());
        session.send("a".to_owned());
        let mut first = session.open(None, 4).unwrap();
        session.send("b".to_owned());
        assert_eq!(received(&mut first), [(1, "a".to_owned()), (2, "b".to_owned())]);
        assert!(session.open(None, 4).is_none(), "one at a time");
        let mut second = session.open(Some(1), 4).unwrap();
        assert_eq!(received(&mut second), [(2, "b".to_owned())]);
        assert!(received(&mut first).is_empty() && first.is_closed(), "the older one ended");
        drop(second);
        session.send("c".to_owned());
        let mut third = session.open(None, 4).unwrap();
        assert_eq!(received(&mut third), [(3, "c".to_owned())]);
    }

    #[test]
    fn who_does_not_read_loses_the_stream_and_not_the_memory() {
        let mut session = SessionStream::default();
        let mut slow = session.open(None, 1).unwrap();
        for number in 0..1_000 {
            session.send(number.to_string());
        }
        assert!(!session.is_open());
        assert_eq!(received(&mut slow).len(), 1 + MAX_RECENT);
        let mut again = session.open(Some(0), 1).unwrap();
        assert_eq!(received(&mut again).first(), Some(&(937, "936".to_owned())), "only the newest are kept");
    }
}
