//! Server-sent events, taken out of bytes that may be cut anywhere.

use helve_core::ModelError;
use memchr::memchr;

/// The longest event.
const MAX_EVENT: usize = 16 << 20;

/// Takes events out of a stream of bytes.
#[derive(Default)]
pub(crate) struct Events {
    /// The line that is not over yet.
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    begun: bool,
}

/// Told of each event: its name, which may be empty, and its data.
pub(crate) type Sink<'a> = dyn FnMut(&str, &[u8]) -> Result<(), ModelError> + 'a;

impl Events {
    /// Takes more bytes, and tells of the events that are complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), ModelError> {
        while let Some(end) = memchr(b'\n', bytes) {
            let line = &bytes[..end];
            bytes = &bytes[end + 1..];
            if self.line.is_empty() {
                // Almost every event is one line of data and an empty one: told where it lies.
                if let (Some(data), Some(rest)) = (data_of(line), bytes.strip_prefix(b"\n"))
                    && !self.has_data
                {
                    sink(&self.name, data)?;
                    self.name.clear();
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

    /// Nothing more comes. An event that lacks its empty line counts.
    pub(crate) fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let line = std::mem::take(&mut self.line);
        self.take(&line, sink)?;
        self.take(b"", sink)
    }

    fn take(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = if std::mem::replace(&mut self.begun, true) { line } else { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) };
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                sink(&self.name, &self.data)?;
            }
            self.data.clear();
            self.name.clear();
        } else if let Some(data) = data_of(line) {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data);
        } else if let Some(name) = line.strip_prefix(b"event:") {
            self.name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
        }
        self.bounded()
    }

    fn bounded(&self) -> Result<(), ModelError> {
        if self.line.len() + self.data.len() > MAX_EVENT {
            return Err(ModelError::Protocol(format!("one event of the answer is larger than {MAX_EVENT} bytes")));
        }
        Ok(())
    }
}

/// What stands behind `data:`.
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
            Ok(())
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
    fn an_endless_line_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let ended = (0..20).map(|_| events.feed(&piece, &mut |_, _| Ok(()))).find_map(Result::err);
        assert!(matches!(ended, Some(ModelError::Protocol(_))));
    }
}
