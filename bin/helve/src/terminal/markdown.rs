//! Renders Markdown on a terminal while it streams in.
//!
//! The renderer processes each character once, so the output does not depend on how the text is split. It buffers only what is
//! undecided: the last word, a marker, the start of a line, a link, the row of a table.

mod blocks;
mod inline;
mod line_start;
mod table;
mod wrap;

use helve::internal::printable;

use self::blocks::BlockRenderer;

/// A streaming Markdown renderer.
#[derive(Debug)]
pub struct Markdown {
    width: usize,
    /// The last character: after an emoji, invisible characters may belong to it.
    before: char,
    /// Whether the last character was a carriage return, which a newline may follow.
    carriage: bool,
    output: Output,
}

#[derive(Debug)]
enum Output {
    Plain(String),
    Styled(Box<BlockRenderer>),
}

impl Markdown {
    /// Creates a renderer for a terminal of this width. Without `style`, the renderer only escapes characters that would harm a terminal.
    pub fn new(width: usize, style: bool) -> Self {
        let output = if style { Output::Styled(Box::new(BlockRenderer::new(width))) } else { Output::Plain(String::new()) };
        Self { width, before: '\n', carriage: false, output }
    }

    /// Adds text and returns what can be printed now, with every style reset at its end.
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
        self.output.take()
    }

    /// Returns the buffered output, ends the last line, and resets the renderer.
    pub fn finish(&mut self) -> String {
        match &mut self.output {
            Output::Plain(out) if self.before != '\n' => out.push('\n'),
            Output::Plain(_) => {}
            Output::Styled(lines) => lines.end(),
        }
        let out = self.output.take();
        *self = Self::new(self.width, matches!(self.output, Output::Styled(_)));
        out
    }

    /// Escapes characters that would harm the terminal or hide text.
    fn escape(&mut self, character: char) {
        let before = std::mem::replace(&mut self.before, character);
        let harmless = matches!(character, '\n' | '\t') || !printable::is_deceptive(character);
        if harmless || printable::escape(&String::from_iter([before, character])).ends_with(character) {
            self.output.push(character);
        } else {
            printable::escape(character.encode_utf8(&mut [0; 4])).chars().for_each(|shown| self.output.push(shown));
        }
    }
}

impl Output {
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
