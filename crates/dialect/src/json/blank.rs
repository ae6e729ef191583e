//! Skips white space and comments between values.

use super::{Reader, Syntax};
use crate::repair::Repair;
use crate::work::{self, seen};

/// For each byte, whether it is neither white space nor the start of a comment.
static PLAIN: [bool; 256] = {
    let mut table = [true; 256];
    let blank = b" \t\r\n/#";
    let mut place = 0;
    while place < blank.len() {
        table[blank[place] as usize] = false;
        place += 1;
    }
    table
};

impl Reader<'_> {
    /// Skips white space, and comments if the mode allows them. Other comments become syntax errors in the caller.
    #[inline]
    pub(super) fn blank(&mut self) {
        let plain = |at: usize| self.bytes.get(at).is_some_and(|byte| PLAIN[usize::from(*byte)]);
        if plain(self.at) {
            return;
        }
        if self.bytes.get(self.at) == Some(&b' ') && plain(self.at + 1) {
            self.at += 1;
            return;
        }
        self.long_blank();
    }

    fn long_blank(&mut self) {
        loop {
            while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
                work::count(1);
                self.at += 1;
            }
            let rest = &self.bytes[self.at..];
            let python = self.syntax == Syntax::Python;
            let length = match rest {
                [b'#', ..] if python => seen(rest, memchr::memchr(b'\n', rest)).unwrap_or(rest.len()),
                [b'/', b'/', ..] if self.mode.is_lenient() => seen(rest, memchr::memchr(b'\n', rest)).unwrap_or(rest.len()),
                [b'/', b'*', inner @ ..] if self.mode.is_lenient() => match seen(inner, memchr::memmem::find(inner, b"*/")) {
                    Some(end) => end + 4,
                    None => return,
                },
                _ => return,
            };
            if rest[0] == b'/' {
                self.repairs.add(Repair::Comment);
            }
            self.at += length;
        }
    }
}
