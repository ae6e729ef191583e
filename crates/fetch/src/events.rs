//! An incremental parser for server-sent events.

use std::time::Duration;

use memchr::memchr;

/// Maximum size of an event, in bytes.
const MAX_EVENT: usize = 16 << 20;
/// Maximum length of an event id, in bytes. Longer ids are ignored.
const MAX_ID: usize = 1 << 10;

/// An incremental parser for server-sent events. The chunks of the input may end anywhere.
#[derive(Debug, Default)]
pub struct Events {
    /// The incomplete last line of the input.
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    started: bool,
    last_id: String,
    /// The id of the event that is not complete yet.
    next_id: Option<String>,
    retry: Option<Duration>,
}

/// Why parsing stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError<E> {
    /// An event exceeds the maximum size.
    #[error("an event in the response is larger than {MAX_EVENT} bytes")]
    TooLarge,
    /// The sink returned an error.
    #[error("{0}")]
    Sink(E),
}

/// A callback that receives the name, which may be empty, and the data of each event.
pub type EventSink<'a, E> = dyn FnMut(&str, &[u8]) -> Result<(), E> + 'a;

impl Events {
    /// Parses the next chunk of the input and passes complete events to the sink.
    ///
    /// # Errors
    /// Returns an error if the sink fails or if an event is too large.
    pub fn feed<E>(&mut self, mut bytes: &[u8], sink: &mut EventSink<'_, E>) -> Result<(), EventError<E>> {
        while let Some(end) = memchr(b'\n', bytes) {
            let line = &bytes[..end];
            bytes = &bytes[end + 1..];
            if self.line.is_empty() {
                // Almost every event is one line of data and an empty line. Its data is not copied.
                if let (Some(data), Some(rest)) = (data_of(line), bytes.strip_prefix(b"\n"))
                    && !self.has_data
                {
                    sink(&self.name, data).map_err(EventError::Sink)?;
                    self.name.clear();
                    self.take_id();
                    bytes = rest;
                    continue;
                }
                self.take(line, sink)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take(&whole, sink)?;
                whole.clear();
                self.line = whole;
            }
        }
        self.line.extend_from_slice(bytes);
        self.bounded()
    }

    /// Prepares the parser for a new stream that resumes this one: drops an incomplete event, and keeps the last id and the retry delay.
    pub fn restart(&mut self) {
        *self = Self { last_id: std::mem::take(&mut self.last_id), retry: self.retry, ..Self::default() };
    }

    /// Returns the last event id, or an empty string if no complete event had an id.
    #[must_use]
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// Returns the delay before reconnecting, or `None` if the server sent none.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Ends the stream. Passes the last event to the sink even if the empty line after it is missing.
    ///
    /// # Errors
    /// Returns an error if the sink fails or if the event is too large.
    pub fn finish<E>(&mut self, sink: &mut EventSink<'_, E>) -> Result<(), EventError<E>> {
        let line = std::mem::take(&mut self.line);
        self.take(&line, sink)?;
        self.take(b"", sink)
    }

    /// Parses one complete line.
    fn take<E>(&mut self, line: &[u8], sink: &mut EventSink<'_, E>) -> Result<(), EventError<E>> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = if std::mem::replace(&mut self.started, true) { line } else { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) };
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                sink(&self.name, &self.data).map_err(EventError::Sink)?;
            }
            self.data.clear();
            self.name.clear();
            self.take_id();
        } else if let Some(data) = data_of(line) {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data);
        } else if let Some(name) = line.strip_prefix(b"event:") {
            self.name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
        } else if let Some(id) = line.strip_prefix(b"id:").filter(|id| id.len() <= MAX_ID && !id.contains(&0)) {
            self.next_id = Some(String::from_utf8_lossy(id.trim_ascii()).into_owned());
        } else if let Some(time) = line.strip_prefix(b"retry:") {
            let millis = std::str::from_utf8(time.trim_ascii()).ok().and_then(|time| time.parse().ok());
            self.retry = millis.map(Duration::from_millis).or(self.retry);
        }
        self.bounded()
    }

    /// Sets the last id once its event is complete. Setting it earlier would make a client that resumes the stream miss the event.
    fn take_id(&mut self) {
        if let Some(id) = self.next_id.take() {
            self.last_id = id;
        }
    }

    /// Fails if the event so far is too large.
    fn bounded<E>(&self) -> Result<(), EventError<E>> {
        if self.line.len() + self.data.len() > MAX_EVENT {
            return Err(EventError::TooLarge);
        }
        Ok(())
    }
}

/// Returns the value of a `data:` line, or `None` for another line.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let data = line.strip_prefix(b"data:")?;
    let data = data.strip_suffix(b"\r").unwrap_or(data);
    Some(data.strip_prefix(b" ").unwrap_or(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str, chunk: usize) -> Vec<(String, String)> {
        let (mut events, mut told) = (Events::default(), Vec::new());
        let mut sink = |name: &str, data: &[u8]| {
            told.push((name.to_owned(), String::from_utf8_lossy(data).into_owned()));
            Ok::<_, ()>(())
        };
        for piece in text.as_bytes().chunks(chunk) {
            events.feed(piece, &mut sink).expect("events");
        }
        events.finish(&mut sink).expect("the end");
        told
    }

    #[test]
    fn events_are_the_same_in_any_pieces() {
        let text = "\u{feff}: hello\r\n\r\nevent: message_start\r\ndata: {\"a\":1}\r\n\r\ndata:two\ndata: lines\n\nid: 3\nretry: 5\n\nevent: x\n\ndata: last";
        let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
        let expected = [pair("message_start", "{\"a\":1}"), pair("", "two\nlines"), pair("", "last")];
        for chunk in 1..=text.len() {
            assert_eq!(events(text, chunk), expected, "in pieces of {chunk}");
        }
    }

    #[test]
    fn ids_and_delays_are_remembered() {
        let mut events = Events::default();
        for piece in ["id: a1\nretry: 500\ndata:\n\n", "id: a2\ndata: x\n\nretry: soon\n"] {
            events.feed(piece.as_bytes(), &mut |_, _| Ok::<_, ()>(())).expect("events");
        }
        assert_eq!((events.last_id(), events.retry()), ("a2", Some(Duration::from_millis(500))));
    }

    #[test]
    fn half_an_event_counts_for_nothing_when_the_stream_begins_anew() {
        let (mut events, mut told) = (Events::default(), Vec::new());
        let mut sink = |_: &str, data: &[u8]| {
            told.push(String::from_utf8_lossy(data).into_owned());
            Ok::<_, ()>(())
        };
        events.feed(b"id: 1\ndata: one\n\nid: 2\ndata: tw", &mut sink).expect("events");
        assert_eq!(events.last_id(), "1");
        events.restart();
        assert_eq!(events.last_id(), "1");
        events.feed(b"id: 2\ndata: two\n\n", &mut sink).expect("events");
        assert_eq!(events.last_id(), "2");
        assert_eq!(told, ["one", "two"]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let ended = (0..20).map(|_| events.feed(&piece, &mut |_, _| Ok::<_, ()>(()))).find_map(Result::err);
        assert!(ended.is_some());
    }
}
