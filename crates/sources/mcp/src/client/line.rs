//! Lines of a program's output, each of them bounded.

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of each end of a line that is too long is kept: the id of an answer stands in one of them.
const KEPT: usize = 4 << 10;
const CHUNK: usize = 64 << 10;

/// A line that is so many times longer than it may be has no end.
const ENDLESS: usize = 16;

/// A line of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it, without its end.
    Whole(Vec<u8>),
    /// One that was longer than it may be: its beginning and its end.
    TooLong(Vec<u8>, Vec<u8>),
    /// One that does not end.
    Endless,
}

/// Reads lines.
pub(crate) struct Reader<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Where the line begins in the buffer.
    start: usize,
    /// How much of the buffer was looked through already.
    seen: usize,
    dropped: Option<Dropped>,
    is_over: bool,
}

/// A line that is too long.
struct Dropped {
    beginning: Vec<u8>,
    /// How much of it came and went.
    length: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, buffer: Vec::new(), start: 0, seen: 0, dropped: None, is_over: false }
    }

    /// The next line; nothing at the end. A last line without an end counts.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.seen..]) {
                let line = self.take(self.seen + at);
                return Some(self.finish(line));
            }
            // Once for all lines that came together.
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.dropped.is_some() || self.buffer.len() > self.limit {
                let dropped = self
                    .dropped
                    .get_or_insert_with(|| Dropped { beginning: self.buffer[..KEPT.min(self.buffer.len())].to_vec(), length: 0 });
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
                    self.is_over = true;
                    return Some(self.finish(line));
                }
            }
        }
    }

    /// Whether nothing comes after the line that came last, not even its end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the line that ends here out of the buffer. Short ones are copied, long ones keep their room.
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

/// Whether a line that cannot be read was meant as an answer, and not as words about one.
pub(crate) fn is_answer(beginning: &[u8]) -> bool {
    let has = |name: &[u8]| beginning.windows(name.len()).any(|window| window == name);
    beginning.trim_ascii_start().starts_with(b"{") && !has(b"\"method\":") && (has(b"\"result\":") || has(b"\"error\":"))
}

/// The id that an answer names near one of its ends, where most servers write it.
pub(crate) fn find_id(beginning: &[u8], end: &[u8]) -> Option<i64> {
    let number = |text: &[u8]| {
        let text = text.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
    };
    let after = |text: &[u8], at: usize| number(text.get(at + b"\"id\":".len()..)?);
    let first = beginning.windows(5).position(|window| window == b"\"id\":").and_then(|at| after(beginning, at));
    // At the end only one outside of the result counts, which is the last.
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
        let mut reader = Reader::new(text, limit);
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
        let mut reader = Reader::new(tokio::io::repeat(b'x').take(8 << 20), 1 << 20);
        assert!(matches!(reader.next().await, Some(Line::TooLong(..))));
        assert!(reader.buffer.capacity() < 1 << 20, "{}", reader.buffer.capacity());
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_given_up() {
        assert_eq!(Reader::new(tokio::io::repeat(b'x'), 1 << 20).next().await, Some(Line::Endless));
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
        assert!(is_answer(br#" {"jsonrpc":"2.0","id":17,"result":["#));
        assert!(!is_answer(br#"got {"jsonrpc":"2.0","id":17,"result":["#));
        assert!(!is_answer(br#"{"id":17,"method":"x","params":{"result":["#));
    }

    #[test]
    fn the_id_of_a_long_answer_is_found() {
        assert_eq!(find_id(br#"{"jsonrpc":"2.0","id":17,"result":{"id":3,"#, br#""id":4}}"#), Some(17));
        assert_eq!(find_id(br#"{"result":{"id":3,"#, br#""id":4},"jsonrpc":"2.0","id": 17}"#), Some(17));
        assert_eq!(find_id(b"xxxx", b"yyyy"), None);
    }
}
