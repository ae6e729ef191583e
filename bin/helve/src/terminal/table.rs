//! Renders lists as tables. Columns are as wide as their cells; the last column is cut to the terminal's width.

use unicode_width::UnicodeWidthStr;

use super::{STRONG, clean, cut, styled};

const GAP: &str = "  ";

/// A table: rows below headings.
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A cell of a table: plain text and its style.
pub struct Cell {
    text: String,
    style: anstyle::Style,
}

impl Cell {
    /// Creates a cell. The text is redacted, escaped and joined to one line.
    pub fn new(text: &str, style: anstyle::Style) -> Self {
        // Redacted first: the redactor could not find a secret that the table has cut.
        let text = clean(text);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { text: helve::internal::printable::escape_line(&line), style }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, anstyle::Style::new())
    }
}

impl Table {
    /// Creates a table with these headings.
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Prints the table on stdout.
    pub fn print(&self) {
        for line in self.lines(super::width()) {
            super::print(&line);
        }
    }

    /// Returns the table as lines of at most `width` columns.
    fn lines(&self, width: usize) -> Vec<String> {
        let columns = self.headings.len();
        let needed =
            |column: usize| self.rows.iter().map(|row| row[column].text.width()).chain([self.headings[column].width()]).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(needed).collect();
        let before_last: usize = widths[..columns - 1].iter().map(|width| width + GAP.len()).sum();
        let last = width.saturating_sub(before_last).max(20);
        let render = |cells: &mut dyn Iterator<Item = (&str, anstyle::Style)>| {
            let mut line = String::new();
            for (column, (text, style)) in cells.enumerate() {
                if column + 1 == columns {
                    line.push_str(&styled(style, &cut(text, last)));
                } else {
                    let padding = " ".repeat(widths[column] - text.width());
                    line.push_str(&styled(style, text));
                    line.push_str(&padding);
                    line.push_str(GAP);
                }
            }
            line
        };
        let heading = render(&mut self.headings.iter().map(|heading| (*heading, STRONG)));
        let rows = self.rows.iter().map(|row| render(&mut row.iter().map(|cell| (cell.text.as_str(), cell.style))));
        std::iter::once(heading).chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_cut() {
        let mut table = Table::new(&["NAME", "WHAT"]);
        table.row(vec!["天气".into(), "a long description\nof more than one line\u{1b}[31m".into()]);
        table.row(vec!["add".into(), "short".into()]);
        let plain: Vec<_> = table.lines(26).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(plain, ["NAME  WHAT", "天气  a long description…", "add   short"]);
    }
}
