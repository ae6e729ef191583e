//! Wraps text to lines: takes characters, and outputs each word as soon as its line is known.
//!
//! Every part of the output resets its style, so that the next output starts without styles.

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

use crate::terminal::styled;

/// The variation selector for the emoji form of the character before it.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// The prefix of the lines of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Prefix of the first line, with styles.
    pub first: String,
    /// Prefix of the other lines, with styles.
    pub rest: String,
    /// Width of both prefixes, in columns.
    pub width: usize,
}

/// Breaks text into lines.
#[derive(Debug, Default)]
pub struct LineWrapper {
    width: usize,
    prefix: Prefix,
    /// Whether the current line has its prefix already.
    begun: bool,
    /// Whether the current line continues a wrapped line.
    broken: bool,
    column: usize,
    spaces: Vec<(char, Style)>,
    word: Vec<(char, Style)>,
    word_width: usize,
    out: String,
}

impl LineWrapper {
    /// Creates a wrapper for lines of this width, in columns.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Sets the prefix from the next line on.
    pub fn begin(&mut self, prefix: Prefix) {
        self.column = prefix.width;
        self.prefix = prefix;
        (self.begun, self.broken) = (false, false);
    }

    /// Adds a character. Use [`LineWrapper::end_line`] for a newline.
    pub fn push(&mut self, character: char, style: Style) {
        if matches!(character, ' ' | '\t') {
            self.flush();
            self.spaces.push((' ', style));
            return;
        }
        let before = self.word.last().map(|(before, _)| *before);
        if before.is_some_and(|before| may_break(before, character)) {
            self.flush();
        }
        let width = columns(before, character);
        if width > 0 && self.word_width + width > self.room() {
            // The selector stays with the character that it applies to.
            let drawn = self.word.pop_if(|_| character == EMOJI_SELECTOR);
            self.word_width -= drawn.map_or(0, |(drawn, _)| columns(None, drawn));
            self.flush();
            self.word_width += drawn.map_or(0, |(drawn, _)| columns(None, drawn));
            self.word.extend(drawn);
        }
        self.word.push((character, style));
        self.word_width += width;
    }

    /// Adds a whole text in one style.
    pub fn push_str(&mut self, text: &str, style: Style) {
        text.chars().for_each(|character| self.push(character, style));
    }

    /// Ends the line, even if it has only a prefix.
    pub fn end_line(&mut self) {
        self.flush();
        self.spaces.clear();
        if !self.begun {
            self.start();
        }
        self.out.push('\n');
        self.begin(Prefix { first: self.prefix.rest.clone(), ..self.prefix.clone() });
    }

    /// Writes text without wrapping, such as code or a frame. The line must have ended before.
    pub fn verbatim(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes one character without wrapping.
    pub fn verbatim_char(&mut self, character: char) {
        self.out.push(character);
    }

    /// Takes the output that can be printed now.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Returns the current prefix.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// Returns the width of a line without its prefix, in columns.
    pub fn room(&self) -> usize {
        // At least one wide character must fit on every line.
        self.width.saturating_sub(self.prefix.width).max(2)
    }

    fn start(&mut self) {
        self.out.push_str(if self.broken { &self.prefix.rest } else { &self.prefix.first });
        (self.begun, self.column) = (true, self.prefix.width);
    }

    /// Writes the complete word.
    fn flush(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let needed = self.spaces.len() + self.word_width;
        if self.begun && self.column.saturating_add(needed) > self.prefix.width.saturating_add(self.room()) {
            self.out.push('\n');
            (self.begun, self.broken) = (false, true);
        }
        if !self.begun {
            self.spaces.clear();
            self.start();
        }
        self.column += self.spaces.len() + self.word_width;
        self.word_width = 0;
        let mut run = String::new();
        let mut style = Style::new();
        for (character, its) in self.spaces.drain(..).chain(self.word.drain(..)) {
            if its != style {
                write_run(&mut self.out, style, &run);
                run.clear();
                style = its;
            }
            run.push(character);
        }
        write_run(&mut self.out, style, &run);
    }
}

fn write_run(out: &mut String, style: Style, text: &str) {
    if style.is_plain() {
        out.push_str(text);
    } else if !text.is_empty() {
        out.push_str(&styled(style, text));
    }
}

/// Returns the number of columns that a character adds after another character.
fn columns(before: Option<char>, character: char) -> usize {
    match character {
        // An emoji takes two columns, even if its character alone takes one.
        EMOJI_SELECTOR => before.map_or(0, |before| 2_usize.saturating_sub(before.width().unwrap_or(0))),
        _ => character.width().unwrap_or(0),
    }
}

/// Returns whether a line may break between two characters without a space.
fn may_break(before: char, after: char) -> bool {
    let wide = |character: char| character.width() == Some(2);
    (wide(before) || wide(after)) && !never_ends(before) && !never_starts(after)
}

/// Returns whether a line must not end with this character: opening punctuation, or the joiner of emoji.
fn never_ends(character: char) -> bool {
    "（［｛「『【〔〖《〈“‘([{<￥＄$\u{200d}".contains(character)
}

/// Returns whether a line must not start with this character: closing punctuation, or a part of the emoji before it.
fn never_starts(character: char) -> bool {
    character.width() == Some(0)
        || matches!(character, '\u{1f3fb}'..='\u{1f3ff}')
        || "，。、；：？！）］｝」』】〕〗》〉”’…—～·ー々％,.;:?!)]}>%".contains(character)
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        let mut wrap = LineWrapper::new(width);
        wrap.push_str(text, Style::new());
        wrap.end_line();
        wrap.take().lines().map(str::to_owned).collect()
    }

    #[test]
    fn words_stay_whole_and_long_ones_are_cut() {
        assert_eq!(lines("one two  three", 8), ["one two", "three"]);
        assert_eq!(lines("a abcdefghij k", 4), ["a", "abcd", "efgh", "ij k"]);
        assert_eq!(lines("fits", 4), ["fits"]);
        assert_eq!(lines("", 4), [""]);
        assert_eq!(lines("  \t x ", 4), ["x"]);
        assert_eq!(lines("anything at all", usize::MAX), ["anything at all"]);
    }

    #[test]
    fn chinese_breaks_anywhere_but_before_what_closes() {
        assert_eq!(lines("今天天气很好，我们去公园。", 10), ["今天天气很", "好，我们去", "公园。"]);
        assert_eq!(lines("今天天气好，我们", 10), ["今天天气", "好，我们"]);
        assert_eq!(lines("他说「你好」了", 8), ["他说「你", "好」了"]);
        assert_eq!(lines("他说「你好", 6), ["他说", "「你好"]);
        assert_eq!(lines("使用Rust语言", 8), ["使用Rust", "语言"]);
        assert_eq!(lines("❤️❤️👩‍🚀🙂", 4).iter().map(|line| line.width()).max(), Some(4));
    }

    #[test]
    fn lines_that_follow_have_their_own_prefix() {
        let mut wrap = LineWrapper::new(8);
        wrap.begin(Prefix { first: "• ".into(), rest: "  ".into(), width: 2 });
        wrap.push_str("one two three", Style::new());
        wrap.end_line();
        wrap.push_str("four", Style::new());
        wrap.end_line();
        assert_eq!(wrap.take(), "• one\n  two\n  three\n  four\n");
    }

    #[test]
    fn every_piece_ends_its_style() {
        let mut wrap = LineWrapper::new(80);
        wrap.push_str("one two", Style::new().bold());
        assert_eq!(wrap.take(), "\u{1b}[1mone\u{1b}[0m");
        wrap.end_line();
        assert_eq!(wrap.take(), "\u{1b}[1m two\u{1b}[0m\n");
    }
}
