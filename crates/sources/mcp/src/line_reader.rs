//! Reads lines of limited length.

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes kept of the beginning and of the end of a line that is too long. One of them contains the id of a response.
const KEPT: usize = 4 << 10;
const CHUNK: usize = 64 << 10;

/// A line that is this many times longer than the limit is considered endless.
const ENDLESS: usize = 16;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A complete line, without the line break.
    Whole(Vec<u8>),
    /// A line longer than the limit: its beginning and its end.
    TooLong(Vec<u8>, Vec<u8>),
    /// A line so long that it is not read to its end.
    Endless,
}

/// Reads lines of limited length from `input`.
pub(crate) struct LineReader<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Offset of the current line in the buffer.
    start: usize,
    /// Number of bytes of the buffer that were searched for a line break.
    seen: usize,
    dropped: Option<LongLine>,
    at_end: bool,
}

/// A line that is too long.
struct LongLine {
    beginning: Vec<u8>,
    /// Number of dropped bytes.
    length: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, buffer: Vec::new(), start: 0, seen: 0, dropped: None, at_end: false }
    }

    /// Reads the next line. Returns `None` at the end of the input. The last line need not have a line break.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.seen..]) {
                let line = self.take(self.seen + at);
                return Some(self.finish(line));
            }
            // Removes all lines that arrived together at once.
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.dropped.is_some() || self.buffer.len() > self.limit {
                let dropped = self
                    .dropped
                    .get_or_insert_with(|| LongLine { beginning: self.buffer[..KEPT.min(self.buffer.len())].to_vec(), length: 0 });
                let cut = self.buffer.len().saturating_sub(KEPT);
                dropped.length += cut;
                if dropped.length / ENDLESS > self.limit {
                    return Some(Line::Endless);
                }
                self.buffer.drain(..cut);
                self.buffer.shrink_to(KEPT + CHUNK);
            }
            self.seen = self.buffer.len();
            self.buffer.reserve(CHUNK);
            match self.input.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                _ if self.buffer.is_empty() && self.dropped.is_none() => return None,
                _ => {
                    let line = std::mem::take(&mut self.buffer);
                    self.seen = 0;
                    self.at_end = true;
                    return Some(self.finish(line));
                }
            }
        }
    }

    /// Returns whether the input ended in the last line that was returned.
    pub(crate) fn at_end(&self) -> bool {
        self.at_end
    }

    /// Removes the line that ends at `end` from the buffer. Copies a short line; a long line keeps the buffer.
    fn take(&mut self, end: usize) -> Vec<u8> {
        if end - self.start <= CHUNK {
            let line = self.buffer[self.start..end].to_vec();
            self.start = end + 1;
            self.seen = self.start;
            return line;
        }
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(end);
        line.drain(..self.start);
        self.start = 0;
        self.seen = 0;
        line
    }

    fn finish(&mut self, mut line: Vec<u8>) -> Line {
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        match self.dropped.take() {
            None if line.len() <= self.limit => Line::Whole(line),
            None => {
                let end = line.split_off(line.len().saturating_sub(KEPT));
                line.truncate(KEPT);
                Line::TooLong(line, end)
            }
            Some(dropped) => {
                line.drain(..line.len().saturating_sub(KEPT));
                Line::TooLong(dropped.beginning, line)
            }
        }
    }
}

/// Returns whether an invalid line looks like a JSON-RPC response.
pub(crate) fn is_response(beginning: &[u8]) -> bool {
    let has = |name: &[u8]| beginning.windows(name.len()).any(|window| window == name);
    beginning.trim_ascii_start().starts_with(b"{") && !has(b"\"method\":") && (has(b"\"result\":") || has(b"\"error\":"))
}

/// Finds the id of a response of which only the beginning and the end are known. Most servers write the id near one of them.
pub(crate) fn find_id(beginning: &[u8], end: &[u8]) -> Option<i64> {
    let number = |text: &[u8]| {
        let text = text.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
    };
    let after = |text: &[u8], at: usize| number(text.get(at + b"\"id\":".len()..)?);
    let first = beginning.windows(5).position(|window| window == b"\"id\":").and_then(|at| after(beginning, at));
    // In the end of a line, only the last id is outside of the result.
    let last = || end.windows(5).rposition(|window| window == b"\"id\":").and_then(|at| after(end, at));
    let says_result_first = beginning.windows(9).position(|window| window == b"\"result\":");
    let id_first = beginning.windows(5).position(|window| window == b"\"id\":");
    match (id_first, says_result_first) {
        (Some(id), Some(result)) if id < result => first,
        (Some(_), None) => first,
        _ => last(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], limit: usize) -> Vec<Line> {
        let mut reader = LineReader::new(text, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn lines_come_whole_with_any_end() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(lines(b"a\nbc\r\n\nd", 10).await, [whole("a"), whole("bc"), whole(""), whole("d")]);
        assert_eq!(lines(b"", 10).await, []);
    }

    #[tokio::test]
    async fn of_long_lines_only_the_ends_are_kept() {
        let long = format!("{}{}{}\nshort\n", "a".repeat(KEPT), "x".repeat(9 << 20), "z".repeat(KEPT));
        let found = lines(long.as_bytes(), 1 << 20).await;
        assert_eq!(found[0], Line::TooLong("a".repeat(KEPT).into_bytes(), "z".repeat(KEPT).into_bytes()));
        assert_eq!(found[1], Line::Whole(b"short".to_vec()));
        let mut reader = LineReader::new(tokio::io::repeat(b'x').take(8 << 20), 1 << 20);
        assert!(matches!(reader.next().await, Some(Line::TooLong(..))));
        assert!(reader.buffer.capacity() < 1 << 20, "{}", reader.buffer.capacity());
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_given_up() {
        assert_eq!(LineReader::new(tokio::io::repeat(b'x'), 1 << 20).next().await, Some(Line::Endless));
    }

    #[tokio::test]
    async fn lines_that_come_together_are_all_there() {
        let long = "y".repeat(2 * CHUNK);
        let text = format!("{}{long}\n{}{long}\nend", "a\n".repeat(100_000), "bc\n".repeat(100_000));
        let whole: Vec<Line> = text.split('\n').map(|line| Line::Whole(line.as_bytes().to_vec())).collect();
        assert!(lines(text.as_bytes(), 1 << 20).await == whole);
    }

    #[test]
    fn only_an_answer_is_taken_for_one() {
        assert!(is_response(br#" {"jsonrpc":"2.0","id":17,"result":["#));
        assert!(!is_response(br#"got {"jsonrpc":"2.0","id":17,"result":["#));
        assert!(!is_response(br#"{"id":17,"method":"x","params":{"result":["#));
    }

    #[test]
    fn the_id_of_a_long_answer_is_found() {
        assert_eq!(find_id(br#"{"jsonrpc":"2.0","id":17,"result":{"id":3,"#, br#""id":4}}"#), Some(17));
        assert_eq!(find_id(br#"{"result":{"id":3,"#, br#""id":4},"jsonrpc":"2.0","id": 17}"#), Some(17));
        assert_eq!(find_id(b"xxxx", b"yyyy"), None);
    }
}
