//! Markdown for a terminal, shown while it streams in.
//!
//! Each character is looked at once and alone, so the result does not depend on the pieces in which a text comes. Only what
//! is undecided is held back: the word at the end, a marker, the start of a line, a link, the row of a table.

mod block;
mod inline;
mod lines;
mod table;
mod wrap;

use helve::internal::printable;

use self::lines::Lines;

/// Turns Markdown into text for a terminal.
#[derive(Debug)]
pub struct Markdown {
    width: usize,
    /// The last character, to tell pictures from what hides.
    before: char,
    /// A carriage return came, and a newline may follow.
    carriage: bool,
    out: Out,
}

/// What becomes of the characters.
#[derive(Debug)]
enum Out {
    Plain(String),
    Styled(Box<Lines>),
}

impl Markdown {
    /// Markdown for a terminal of this width. Without style, the text stays as it is, but for what would harm a terminal.
    pub fn new(width: usize, style: bool) -> Self {
        let out = if style { Out::Styled(Box::new(Lines::new(width))) } else { Out::Plain(String::new()) };
        Self { width, before: '\n', carriage: false, out }
    }

    /// Takes the next piece of the text and gives what can be printed now. It ends every style that it starts.
    pub fn push(&mut self, text: &str) -> String {
        for character in text.chars() {
            if std::mem::take(&mut self.carriage) && character != '\n' {
                self.escape('\r');
            }
            match character {
                '\r' => self.carriage = true,
                _ => self.escape(character),
            }
        }
        self.out.take()
    }

    /// Gives what was held back, and ends the last line if there is one. The next text starts anew.
    pub fn finish(&mut self) -> String {
        match &mut self.out {
            Out::Plain(out) if self.before != '\n' => out.push('\n'),
            Out::Plain(_) => {}
            Out::Styled(lines) => lines.end(),
        }
        let out = self.out.take();
        *self = Self::new(self.width, matches!(self.out, Out::Styled(_)));
        out
    }

    /// Shows what would harm the terminal, or hide, as an escape.
    fn escape(&mut self, character: char) {
        let before = std::mem::replace(&mut self.before, character);
        let harmless = matches!(character, '\n' | '\t') || !printable::is_deceptive(character);
        if harmless || printable::escape(&String::from_iter([before, character])).ends_with(character) {
            self.out.push(character);
        } else {
            printable::escape(character.encode_utf8(&mut [0; 4])).chars().for_each(|shown| self.out.push(shown));
        }
    }
}

impl Out {
    fn push(&mut self, character: char) {
        match self {
            Self::Plain(out) => out.push(character),
            Self::Styled(lines) => lines.push(character),
        }
    }

    fn take(&mut self) -> String {
        match self {
            Self::Plain(out) => std::mem::take(out),
            Self::Styled(lines) => lines.take(),
        }
    }
}

#[cfg(test)]
mod tests;
