//! The blocks of a text as lines: which block a line belongs to, and what stands before it on the terminal.

use anstyle::Style;

use super::block::{self, Fence, Inside, Kind, Start};
use super::inline::Inline;
use super::table::Table;
use super::wrap::{Prefix, Wrap};
use crate::terminal::{FAINT, STRONG, styled};

/// How many items may begin behind each other's markers.
const DEEPEST: usize = 16;
/// How far a rule reaches at most.
const RULE: usize = 60;

/// Turns Markdown without harmful characters into lines.
#[derive(Debug)]
pub struct Lines {
    width: usize,
    line: Line,
    wrap: Wrap,
    inline: Inline,
    /// The items that the current line stands in.
    items: Vec<Item>,
    /// How many quotes the current line stands in.
    quotes: usize,
    /// The number of quotes of the blank lines since the last text.
    blank: Option<usize>,
    /// Whether anything was shown.
    begun: bool,
    table: Rows,
}

/// Where in a line the text is.
#[derive(Debug)]
enum Line {
    /// At its start, which is held back until it is known what it starts. `inside` says that the marker of an item
    /// stands before.
    Start { held: String, inside: bool, column: usize },
    /// In text that is wrapped.
    Text,
    /// At the start of a line of code.
    CodeStart { block: Block, held: String },
    /// In a line of code.
    Code { block: Block },
}

/// A code block.
#[derive(Debug, Clone)]
struct Block {
    fence: Fence,
    quotes: usize,
    indent: usize,
}

/// An item of a list.
#[derive(Debug)]
struct Item {
    /// Where its marker stands in the text.
    indent: usize,
    /// Where its content stands on the terminal.
    content: usize,
}

/// The rows that may be, or are, a table.
#[derive(Debug, Default)]
enum Rows {
    #[default]
    None,
    /// One row, which is a heading if dashes follow.
    Heading(String),
    Table(Table),
}

impl Lines {
    /// Lines for a terminal of this width.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            line: Line::start(),
            wrap: Wrap::new(width),
            inline: Inline::default(),
            items: Vec::new(),
            quotes: 0,
            blank: None,
            begun: false,
            table: Rows::None,
        }
    }

    /// Takes the next character.
    pub fn push(&mut self, character: char) {
        if character == '\n' {
            return self.end_line();
        }
        match &mut self.line {
            Line::Start { held, .. } | Line::CodeStart { held, .. } => {
                held.push(character);
                self.decide(false);
            }
            Line::Text => self.inline.push(character, &mut self.wrap),
            Line::Code { .. } => self.wrap.verbatim_char(character),
        }
    }

    /// What can be printed now.
    pub fn take(&mut self) -> String {
        self.wrap.take()
    }

    fn end_line(&mut self) {
        self.decide(true);
        self.line = match std::mem::replace(&mut self.line, Line::start()) {
            Line::Text => {
                self.inline.end_line(&mut self.wrap);
                self.wrap.end_line();
                Line::start()
            }
            Line::Code { block } => {
                self.wrap.verbatim_char('\n');
                Line::CodeStart { block, held: String::new() }
            }
            other => other,
        };
    }

    /// Ends the last line, and what is open.
    pub fn end(&mut self) {
        let empty = match &self.line {
            Line::Start { held, inside, .. } => held.is_empty() && !inside,
            Line::CodeStart { held, .. } => held.is_empty(),
            Line::Text | Line::Code { .. } => false,
        };
        if !empty {
            self.end_line();
        }
        if matches!(self.line, Line::CodeStart { .. }) {
            self.close();
        }
        self.end_table();
    }

    /// Looks at the start of a line, and goes on behind it once it is known what it is.
    fn decide(&mut self, ended: bool) {
        match &mut self.line {
            Line::Start { held, inside, column } => {
                let Some(mut start) = block::start(held, ended, *inside) else { return };
                start.indent += *column;
                if *inside && self.items.len() >= DEEPEST && matches!(start.kind, Kind::Item(_)) {
                    (start.kind, start.content) = (Kind::Text, 0);
                }
                let (held, inside) = (std::mem::take(held), *inside);
                self.open(start, &held, inside, ended);
            }
            Line::CodeStart { block, held } => {
                let Some(found) = block::inside(held, ended, &block.fence, block.quotes, block.indent) else { return };
                let (held, block) = (std::mem::take(held), block.clone());
                self.go_on(&found, &held, block, ended);
            }
            Line::Text | Line::Code { .. } => {}
        }
    }

    /// Opens the block that a line starts. `inside` says that it stands behind the marker of an item.
    fn open(&mut self, start: Start, held: &str, inside: bool, ended: bool) {
        let content = &held[start.content..];
        if !inside {
            if start.quotes != self.quotes && start.kind != Kind::Blank {
                self.items.clear();
            }
            if start.kind != Kind::Row {
                self.end_table();
            }
        }
        if start.kind == Kind::Blank && !inside {
            self.inline.begin(Style::new());
            self.blank = self.begun.then(|| start.quotes.min(self.blank.unwrap_or(start.quotes)));
            self.line = Line::start();
            return;
        }
        if !inside {
            let text = start.kind == Kind::Text && self.quotes == start.quotes && self.blank.is_none();
            self.quotes = start.quotes;
            self.end_blank();
            while self.items.last().is_some_and(|item| start.indent < item.indent + 2) {
                self.items.pop();
            }
            if !text {
                self.inline.begin(Style::new());
            }
            let prefix = self.prefix(start.indent, matches!(start.kind, Kind::Text | Kind::Heading(_)));
            self.wrap.begin(prefix);
        }
        self.line = Line::Text;
        match start.kind {
            Kind::Item(marker) => self.open_item(&marker, start.indent, content, ended),
            Kind::Fence(fence) => self.open_fence(fence, start.indent),
            Kind::Row if !inside => self.row(content),
            Kind::Rule => {
                let room = self.wrap.room().min(RULE);
                self.wrap.push_str(&"─".repeat(room), FAINT);
            }
            Kind::Heading(level) => {
                self.inline.begin(if level == 1 { STRONG.underline() } else { STRONG });
                content.chars().for_each(|character| self.inline.push(character, &mut self.wrap));
            }
            Kind::Text | Kind::Row | Kind::Blank => content.chars().for_each(|character| self.inline.push(character, &mut self.wrap)),
        }
    }

    fn open_item(&mut self, marker: &str, indent: usize, content: &str, ended: bool) {
        let before = self.prefix(indent, false);
        let prefix = self.mark(marker, &before);
        let space = content.len() - content.trim_start_matches([' ', '\t']).len();
        self.items.push(Item { indent, content: prefix.width.saturating_sub(self.bars().width) });
        self.wrap.begin(prefix);
        let column = indent + marker.chars().count() + space.min(1);
        self.line = Line::Start { held: content[space.min(1)..].to_owned(), inside: true, column };
        self.decide(ended);
    }

    /// The prefix of an item: what is there already, and its marker.
    fn mark(&self, marker: &str, before: &Prefix) -> Prefix {
        let length = marker.chars().count() + 1;
        Prefix {
            // A marker behind a marker stays on the same line.
            first: format!("{}{} ", self.wrap.prefix().first, styled(FAINT, marker)),
            rest: format!("{}{}", before.rest, " ".repeat(length)),
            width: before.width + length,
        }
    }

    fn open_fence(&mut self, fence: Fence, indent: usize) {
        self.wrap.push_str(format!("╭─ {}", fence.info).trim_end(), FAINT);
        self.wrap.end_line();
        self.line = Line::CodeStart { block: Block { fence, quotes: self.quotes, indent }, held: String::new() };
    }

    /// Goes on in a code block.
    fn go_on(&mut self, found: &Inside, held: &str, block: Block, ended: bool) {
        match *found {
            Inside::Code(from) => {
                let (prefix, code) = (self.wrap.prefix().rest.clone(), &held[from..]);
                self.wrap.verbatim(if code.is_empty() { prefix.trim_end_matches(' ') } else { &prefix });
                self.wrap.verbatim(if code.is_empty() { "" } else { "  " });
                self.wrap.verbatim(code);
                self.line = Line::Code { block };
            }
            Inside::Close => self.close(),
            Inside::Left => {
                self.close();
                self.line = Line::Start { held: held.to_owned(), inside: false, column: 0 };
                self.decide(ended);
            }
        }
    }

    fn close(&mut self) {
        self.wrap.push_str("╰─", FAINT);
        self.wrap.end_line();
        self.line = Line::start();
    }

    fn row(&mut self, row: &str) {
        self.line = Line::start();
        self.table = match std::mem::take(&mut self.table) {
            Rows::None => Rows::Heading(row.to_owned()),
            Rows::Heading(heading) => {
                if let Some(table) = Table::new(&heading, row, self.wrap.room()) {
                    Rows::Table(table)
                } else {
                    self.text_line(&heading);
                    Rows::Heading(row.to_owned())
                }
            }
            Rows::Table(mut table) => {
                let lines = table.row(row);
                self.whole_lines(&lines);
                Rows::Table(table)
            }
        };
    }

    fn end_table(&mut self) {
        match std::mem::take(&mut self.table) {
            Rows::None => {}
            Rows::Heading(heading) => self.text_line(&heading),
            Rows::Table(table) => self.whole_lines(&table.finish()),
        }
    }

    /// Shows a line that is text after all.
    fn text_line(&mut self, text: &str) {
        text.chars().for_each(|character| self.inline.push(character, &mut self.wrap));
        self.inline.end_line(&mut self.wrap);
        self.wrap.end_line();
    }

    /// Shows lines that are laid out already.
    fn whole_lines(&mut self, lines: &[String]) {
        let prefix = self.wrap.prefix().rest.clone();
        for line in lines {
            self.wrap.verbatim(&format!("{prefix}{}\n", line.trim_end_matches(' ')));
        }
    }

    /// Shows the blank lines that stood before this text as one.
    fn end_blank(&mut self) {
        if let Some(quotes) = self.blank.take() {
            let bars = bars(quotes.min(self.quotes));
            self.wrap.verbatim(&format!("{}\n", bars.rest.trim_end()));
        }
        self.begun = true;
    }

    fn bars(&self) -> Prefix {
        bars(self.quotes)
    }

    /// What stands before a line: the bars of its quotes, and the space of its item or of its own.
    fn prefix(&self, indent: usize, own: bool) -> Prefix {
        let bars = self.bars();
        let space = match self.items.last() {
            Some(item) => item.content,
            None if own => indent,
            None => 0,
        };
        let space = " ".repeat(space.min(self.width / 2));
        let line = format!("{}{space}", bars.rest);
        Prefix { first: line.clone(), rest: line, width: bars.width + space.len() }
    }
}

impl Line {
    fn start() -> Self {
        Self::Start { held: String::new(), inside: false, column: 0 }
    }
}

fn bars(quotes: usize) -> Prefix {
    let bars = styled(FAINT, "│") + " ";
    let line = bars.repeat(quotes);
    Prefix { first: line.clone(), rest: line, width: 2 * quotes }
}
