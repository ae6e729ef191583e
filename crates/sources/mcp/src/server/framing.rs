//! Finds the boundaries of requests on a connection to detect request smuggling: requests with both a length and a transfer encoding. The
//! HTTP library accepts such requests and does not report them.

/// Maximum number of bytes kept of a header line. A longer line is neither a valid length nor a transfer encoding.
const MAX_LINE: usize = 128;

/// The state machine that parses the bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    part: Part,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    head: Head,
}

/// The part of a request that comes next on the connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// A body, with the number of its remaining bytes.
    Body(u64),
    /// A body whose end only the HTTP library can find. No other request may follow on the connection.
    Rest,
}

/// The fields in the head of a request that determine the length of its body.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    started: bool,
    length: Option<u64>,
    has_length: bool,
    has_encoding: bool,
}

impl Head {
    /// Returns whether two parsers could disagree about the end of the body.
    pub fn is_ambiguous(self) -> bool {
        self.has_length && self.has_encoding
    }

    /// Returns whether the request must be the last one on its connection, because this parser cannot find its end.
    pub fn is_last(self) -> bool {
        self.part() == Part::Rest
    }

    fn part(self) -> Part {
        match self.length {
            _ if self.has_encoding => Part::Rest,
            Some(length) => Part::Body(length),
            // The HTTP library rejects an invalid length.
            None if self.has_length => Part::Rest,
            None => Part::Body(0),
        }
    }

    /// Parses a line. Returns whether the line ends the head.
    fn line(&mut self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            // Ignores empty lines before a request.
            return self.started;
        }
        if !std::mem::replace(&mut self.started, true) {
            return false;
        }
        let colon = line.iter().take(MAX_LINE).position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits =
                value.get(1..).and_then(|value| std::str::from_utf8(value.trim_ascii()).ok()).filter(|value| !value.starts_with('+'));
            self.length = digits.filter(|_| line.len() < MAX_LINE).and_then(|digits| digits.parse().ok());
            self.has_length = true;
        }
        self.has_encoding |= name.eq_ignore_ascii_case(b"transfer-encoding");
        false
    }
}

impl Framing {
    /// Parses bytes up to the end of a request. Returns the number of parsed bytes, and the head if it ends in these bytes.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, Option<Head>) {
        let (mut at, mut ended) = (0, None);
        while at < bytes.len() {
            match self.part {
                Part::Rest => at = bytes.len(),
                Part::Body(left) => {
                    let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX).saturating_add(at)) - at;
                    at += taken;
                    self.part = Part::Body(left - taken as u64);
                }
                Part::Head => {
                    let Some(end) = memchr::memchr(b'\n', &bytes[at..]) else {
                        self.keep(&bytes[at..]);
                        return (bytes.len(), ended);
                    };
                    let line = &bytes[at..at + end];
                    at += end + 1;
                    let is_end = if self.line.is_empty() {
                        self.head.line(line)
                    } else {
                        self.keep(line);
                        let whole = std::mem::take(&mut self.line);
                        self.head.line(&whole)
                    };
                    if is_end {
                        let head = std::mem::take(&mut self.head);
                        self.part = head.part();
                        ended = Some(head);
                    }
                }
            }
            if self.part == Part::Body(0) {
                self.part = Part::Head;
                break;
            }
        }
        (at, ended)
    }

    /// Returns whether the last request has arrived completely, and no byte of the next one.
    pub fn is_between(&self) -> bool {
        self.part == Part::Head && !self.head.started && self.line.is_empty()
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Splits a connection into requests, with the facts of their heads.
    fn requests(text: &str, piece: usize) -> Vec<(String, bool, bool)> {
        let (mut framing, mut found, mut open) = (Framing::default(), Vec::new(), (String::new(), None));
        for piece in text.as_bytes().chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (taken, head) = framing.take(rest);
                open.0.push_str(std::str::from_utf8(&rest[..taken]).expect("text"));
                open.1 = head.or(open.1);
                rest = &rest[taken..];
                if framing.is_between()
                    && let Some(head) = open.1
                {
                    found.push((std::mem::take(&mut open.0), head.is_ambiguous(), head.is_last()));
                    open.1 = None;
                }
            }
        }
        if let Some(head) = open.1 {
            found.push((open.0, head.is_ambiguous(), head.is_last()));
        }
        found
    }

    #[test]
    fn a_length_beside_an_encoding_is_found_in_any_order_and_piece() {
        let long = format!("x-long: {}\r\n", "x".repeat(1_000));
        for (head, ambiguous, last) in [
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n".to_owned(), true, true),
            ("transfer-encoding:chunked\nCONTENT-LENGTH:3\n".to_owned(), true, true),
            (format!("{long}Transfer-Encoding: chunked\r\n{long}Content-Length: x\r\n"), true, true),
            ("Transfer-Encoding: chunked\r\n".to_owned(), false, true),
            ("Content-Length: +3\r\n".to_owned(), false, true),
            (format!("{long}X-Content-Length: 3\r\nX: Transfer-Encoding: a\r\n"), false, false),
        ] {
            for piece in [1, 2, 7, 4096] {
                let found = requests(&format!("\r\n\nPOST / HTTP/1.1\r\n{head}\r\n"), piece);
                assert_eq!(found.len(), 1, "{head}");
                assert_eq!((found[0].1, found[0].2), (ambiguous, last), "{head}");
            }
        }
    }

    #[test]
    fn a_body_is_no_head() {
        let body = "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n";
        let first = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let second = "GET /x HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n";
        for piece in [1, 3, 4096] {
            let wanted = vec![(first.clone(), false, false), (second.to_owned(), true, true)];
            assert_eq!(requests(&format!("{first}{second}"), piece), wanted);
        }
    }

    proptest! {
        #[test]
        fn requests_are_told_apart_wherever_they_are_cut(bodies in prop::collection::vec("[a-z\r\n:]{0,40}", 1..5), piece in 1usize..60) {
            let all: Vec<_> = bodies.iter().map(|body| format!("POST / HTTP/1.1\r\nA: b\r\ncontent-length: {}\r\n\r\n{body}", body.len())).collect();
            let found: Vec<_> = requests(&all.concat(), piece).into_iter().map(|(text, ..)| text).collect();
            prop_assert_eq!(found, all);
        }
    }
}
