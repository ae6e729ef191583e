//! Lines of bounded length from something that can be read.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reads lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    max: usize,
}

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// It was longer than a line may be, and was passed over.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R, max: usize) -> Self {
        Self { reader: BufReader::new(reader), max }
    }

    /// The next line that is not empty; nothing at the end. What comes after the last end of a line is a line too. A future that is dropped
    /// loses what it has read.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let piece = self.reader.fill_buf().await?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            too_long |= line.len() + part.len() > self.max;
            if too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(part);
            }
            let (over, read) = (piece.is_empty(), end.map_or(piece.len(), |end| end + 1));
            self.reader.consume(read);
            if !over && end.is_none() {
                continue;
            }
            if too_long {
                return Ok(Some(Line::TooLong));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(Line::Whole(line)));
            }
            if over {
                return Ok(None);
            }
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_or_not_at_all() {
        let long = "x".repeat(20_000);
        let text = format!("a\r\n\n  \nbc\n{long}\n12345678\n123456789\nend");
        let mut lines = Lines::new(text.as_bytes(), 8);
        let whole = |text: &str| Some(Line::Whole(text.as_bytes().to_vec()));
        let too_long = || Some(Line::TooLong);
        for expected in [whole("a\r"), whole("bc"), too_long(), whole("12345678"), too_long(), whole("end"), None, None] {
            assert_eq!(lines.next().await.unwrap(), expected);
        }
    }
}
