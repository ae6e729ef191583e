//! Renders blocks line by line: decides which block a line belongs to, and its prefix on the terminal.

use anstyle::Style;

use super::inline::Inline;
use super::line_start::{self, CodeLine, Fence, LineKind, LineStart};
use super::table::Table;
use super::wrap::{LineWrapper, Prefix};
use crate::terminal::{FAINT, STRONG, styled};

/// Maximum number of list items that start on the same line.
const MAX_NESTING: usize = 16;
/// Maximum width of a horizontal rule, in columns.
const MAX_RULE: usize = 60;

/// A renderer of Markdown blocks. Its input must be escaped already.
#[derive(Debug)]
pub struct BlockRenderer {
    width: usize,
    line: Line,
    wrap: LineWrapper,
    inline: Inline,
    /// The list items around the current line.
    items: Vec<Item>,
    /// Depth of quotes of the current line.
    quotes: usize,
    /// Depth of quotes of the blank lines after the last text.
    blank: Option<usize>,
    /// Whether any text has been rendered.
    begun: bool,
    table: TableState,
}

/// The position in the current line.
#[derive(Debug)]
enum Line {
    /// At the start of a line, which is buffered until its kind is known. `inside`: the text follows the marker of a list item.
    Start { held: String, inside: bool, column: usize },
    /// In wrapped text.
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
    /// Column of the item's marker in the text.
    indent: usize,
    /// Column of the item's content on the terminal.
    content: usize,
}

/// Rows that are, or may become, a table.
#[derive(Debug, Default)]
enum TableState {
    #[default]
    None,
    /// A single row, which becomes the heading if a row of dashes follows.
    Heading(String),
    Table(Table),
}

impl BlockRenderer {
    /// Creates a renderer for a terminal of this width, in columns.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            line: Line::start(),
            wrap: LineWrapper::new(width),
            inline: Inline::default(),
            items: Vec::new(),
            quotes: 0,
            blank: None,
            begun: false,
            table: TableState::None,
        }
    }

    /// Adds a character.
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

    /// Takes the output that can be printed now.
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

    /// Ends the last line and all open blocks.
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

    /// Opens a block once the kind of the line is decided.
    fn decide(&mut self, ended: bool) {
        match &mut self.line {
            Line::Start { held, inside, column } => {
                let Some(mut start) = line_start::start(held, ended, *inside) else { return };
                start.indent += *column;
                if *inside && self.items.len() >= MAX_NESTING && matches!(start.kind, LineKind::Item(_)) {
                    (start.kind, start.content) = (LineKind::Text, 0);
                }
                let (held, inside) = (std::mem::take(held), *inside);
                self.open(start, &held, inside, ended);
            }
            Line::CodeStart { block, held } => {
                let Some(found) = line_start::inside(held, ended, &block.fence, block.quotes, block.indent) else { return };
                let (held, block) = (std::mem::take(held), block.clone());
                self.continue_code(&found, &held, block, ended);
            }
            Line::Text | Line::Code { .. } => {}
        }
    }

    /// Opens the block that a line starts. `inside`: the line follows the marker of a list item.
    fn open(&mut self, start: LineStart, held: &str, inside: bool, ended: bool) {
        let content = &held[start.content..];
        if !inside {
            if start.quotes != self.quotes && start.kind != LineKind::Blank {
                self.items.clear();
            }
            if start.kind != LineKind::Row {
                self.end_table();
            }
        }
        if start.kind == LineKind::Blank && !inside {
            self.inline.begin(Style::new());
            self.blank = self.begun.then(|| start.quotes.min(self.blank.unwrap_or(start.quotes)));
            self.line = Line::start();
            return;
        }
        if !inside {
            let text = start.kind == LineKind::Text && self.quotes == start.quotes && self.blank.is_none();
            self.quotes = start.quotes;
            self.end_blank();
            while self.items.last().is_some_and(|item| start.indent < item.indent + 2) {
                self.items.pop();
            }
            if !text {
                self.inline.begin(Style::new());
            }
            let prefix = self.prefix(start.indent, matches!(start.kind, LineKind::Text | LineKind::Heading(_)));
            self.wrap.begin(prefix);
        }
        self.line = Line::Text;
        match start.kind {
            LineKind::Item(marker) => self.open_item(&marker, start.indent, content, ended),
            LineKind::Fence(fence) => self.open_fence(fence, start.indent),
            LineKind::Row if !inside => self.row(content),
            LineKind::Rule => {
                let room = self.wrap.room().min(MAX_RULE);
                self.wrap.push_str(&"─".repeat(room), FAINT);
            }
            LineKind::Heading(level) => {
                self.inline.begin(if level == 1 { STRONG.underline() } else { STRONG });
                content.chars().for_each(|character| self.inline.push(character, &mut self.wrap));
            }
            LineKind::Text | LineKind::Row | LineKind::Blank => {
                content.chars().for_each(|character| self.inline.push(character, &mut self.wrap));
            }
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

    /// Returns the prefix of a list item: the current prefix and the item's marker.
    fn mark(&self, marker: &str, before: &Prefix) -> Prefix {
        let length = marker.chars().count() + 1;
        Prefix {
            // A marker after a marker stays on the same line.
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

    /// Continues a code block.
    fn continue_code(&mut self, found: &CodeLine, held: &str, block: Block, ended: bool) {
        match *found {
            CodeLine::Code(from) => {
                let (prefix, code) = (self.wrap.prefix().rest.clone(), &held[from..]);
                self.wrap.verbatim(if code.is_empty() { prefix.trim_end_matches(' ') } else { &prefix });
                self.wrap.verbatim(if code.is_empty() { "" } else { "  " });
                self.wrap.verbatim(code);
                self.line = Line::Code { block };
            }
            CodeLine::Close => self.close(),
            CodeLine::Left => {
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
            TableState::None => TableState::Heading(row.to_owned()),
            TableState::Heading(heading) => {
                if let Some(table) = Table::new(&heading, row, self.wrap.room()) {
                    TableState::Table(table)
                } else {
                    self.text_line(&heading);
                    TableState::Heading(row.to_owned())
                }
            }
            TableState::Table(mut table) => {
                let lines = table.row(row);
                self.whole_lines(&lines);
                TableState::Table(table)
            }
        };
    }

    fn end_table(&mut self) {
        match std::mem::take(&mut self.table) {
            TableState::None => {}
            TableState::Heading(heading) => self.text_line(&heading),
            TableState::Table(table) => self.whole_lines(&table.finish()),
        }
    }

    /// Renders a buffered row as text.
    fn text_line(&mut self, text: &str) {
        text.chars().for_each(|character| self.inline.push(character, &mut self.wrap));
        self.inline.end_line(&mut self.wrap);
        self.wrap.end_line();
    }

    /// Renders lines that need no wrapping.
    fn whole_lines(&mut self, lines: &[String]) {
        let prefix = self.wrap.prefix().rest.clone();
        for line in lines {
            self.wrap.verbatim(&format!("{prefix}{}\n", line.trim_end_matches(' ')));
        }
    }

    /// Renders the blank lines before this text as one.
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

    /// Returns the prefix of a line: the bars of its quotes, and the indentation of its list item or of the line itself.
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
