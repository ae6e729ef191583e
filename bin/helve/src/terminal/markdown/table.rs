//! Renders tables row by row: the heading and the first row set the widths of the columns, and longer cells wrap.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::inline::Inline;
use super::wrap::LineWrapper;
use crate::terminal::{FAINT, STRONG, styled};

const BAR: &str = " │ ";
const MIN_WIDTH: usize = 4;
/// Extra width of a column in columns of the terminal, if there is room: later rows are often longer than the first row.
const SLACK: usize = 6;

/// A table with a complete heading.
#[derive(Debug)]
pub struct Table {
    heading: Vec<String>,
    alignments: Vec<Alignment>,
    room: usize,
    /// Widths of the columns; `None` before the first row.
    widths: Option<Vec<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alignment {
    Left,
    Centre,
    Right,
}

impl Table {
    /// Starts a table with a heading and the row of dashes below it. Returns `None` if the two rows do not match.
    pub fn new(heading: &str, dashes: &str, room: usize) -> Option<Self> {
        let (heading, alignments) = (cells(heading), alignments(dashes)?);
        (heading.len() == alignments.len()).then_some(Self { heading, alignments, room, widths: None })
    }

    /// Renders the next row. The first row also renders the heading.
    pub fn row(&mut self, row: &str) -> Vec<String> {
        let mut row = cells(row);
        if row.len() > self.heading.len() {
            let more = row.split_off(self.heading.len());
            row.last_mut().into_iter().for_each(|last| *last = format!("{last} {}", more.join(" ")));
        }
        row.resize(self.heading.len(), String::new());
        let mut lines = self.lay_out(&row);
        lines.extend(self.lines(&row, Style::new()));
        lines
    }

    /// Renders the heading if there was no row.
    pub fn finish(mut self) -> Vec<String> {
        let none = vec![String::new(); self.heading.len()];
        self.lay_out(&none)
    }

    /// Sets the widths and renders the heading, unless the heading is rendered already.
    fn lay_out(&mut self, first: &[String]) -> Vec<String> {
        if self.widths.is_some() {
            return Vec::new();
        }
        let natural = |cell: &String| render(cell, usize::MAX, Style::new()).first().map_or(0, |line| width(line));
        let needed: Vec<_> = self.heading.iter().zip(first).map(|(heading, cell)| natural(heading).max(natural(cell))).collect();
        let room = self.room.saturating_sub(BAR.width() * needed.len().saturating_sub(1));
        let spare = room.saturating_sub(needed.iter().sum()) / needed.len().max(1);
        self.widths = Some(fit(needed.iter().map(|width| width + spare.min(SLACK.max(*width))).collect(), room));
        let mut lines = self.lines(&self.heading, STRONG);
        if let Some(widths) = self.columns() {
            let dashes: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(styled(FAINT, &dashes.join("─┼─")));
        }
        lines
    }

    /// Returns the widths of the columns, or `None` if there was no row yet or the columns do not fit.
    fn columns(&self) -> Option<&[usize]> {
        self.widths.as_deref().filter(|widths| !widths.is_empty())
    }

    fn lines(&self, row: &[String], style: Style) -> Vec<String> {
        let Some(widths) = self.columns() else {
            return render(&row.join(BAR), self.room, style);
        };
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| render(cell, *width, style)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let mut line = String::new();
            for (column, cell) in cells.iter().enumerate() {
                if column > 0 {
                    line.push_str(&styled(FAINT, BAR));
                }
                let text = cell.get(index).map_or("", String::as_str);
                let space = widths[column].saturating_sub(width(text));
                let before = match self.alignments[column] {
                    Alignment::Left => 0,
                    Alignment::Centre => space / 2,
                    Alignment::Right => space,
                };
                line.extend(std::iter::repeat_n(' ', before));
                line.push_str(text);
                if column + 1 < cells.len() {
                    line.extend(std::iter::repeat_n(' ', space - before));
                }
            }
            line
        };
        (0..height).map(line).collect()
    }
}

/// Splits a row into cells.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for character in row.chars() {
        match cells.last_mut() {
            _ if character == '|' && !escaped => cells.push(String::new()),
            Some(cell) => {
                if character == '|' {
                    cell.pop();
                }
                cell.push(character);
            }
            None => {}
        }
        escaped = character == '\\' && !escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|last| last.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Parses a row of dashes. Returns `None` if the row is not one.
fn alignments(row: &str) -> Option<Vec<Alignment>> {
    let alignment = |cell: String| {
        let dashes = cell.trim_matches(':');
        (!dashes.is_empty() && dashes.chars().all(|character| character == '-')).then(|| {
            match (cell.starts_with(':'), cell.ends_with(':')) {
                (true, true) => Alignment::Centre,
                (false, true) => Alignment::Right,
                _ => Alignment::Left,
            }
        })
    };
    cells(row).into_iter().map(alignment).collect()
}

/// Narrows the widest columns until all fit. Returns an empty list if they cannot fit.
fn fit(mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    if widths.len().saturating_mul(MIN_WIDTH) > room {
        return Vec::new();
    }
    while let excess = widths.iter().sum::<usize>().saturating_sub(room)
        && excess > 0
    {
        let widest = widths.iter().copied().max().unwrap_or(0);
        let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(MIN_WIDTH);
        let count = widths.iter().filter(|width| **width == widest).count();
        let step = (widest - next).min(excess.div_ceil(count)).max(1);
        widths.iter_mut().filter(|width| **width == widest).for_each(|width| *width -= step);
    }
    widths
}

/// Renders a cell as lines.
fn render(text: &str, width: usize, style: Style) -> Vec<String> {
    let (mut inline, mut wrap) = (Inline::default(), LineWrapper::new(width));
    inline.begin(style);
    text.chars().for_each(|character| inline.push(character, &mut wrap));
    inline.end_line(&mut wrap);
    wrap.end_line();
    wrap.take().lines().map(str::to_owned).collect()
}

fn width(line: &str) -> usize {
    anstream::adapter::strip_str(line).to_string().width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("| 城市 | °C |", "|:--|--:|", 80).expect("a table");
        let shown = ["城市         │       °C", "─────────────┼─────────", "Berlin       │       21"];
        assert_eq!(plain(&table.row("| **Berlin** | 21 |")), shown);
        assert_eq!(plain(&table.row("| 上海 | 30.5 |")), ["上海         │     30.5"]);
        assert_eq!(plain(&table.row("| Llanfairpwllgwyn | 7 | more")), ["Llanfairpwll │   7 more", "gwyn         │"]);
    }

    #[test]
    fn only_dashes_below_make_a_table() {
        assert!(Table::new("| a | b |", "| c | d |", 80).is_none());
        assert!(Table::new("| a | b |", "|---|", 80).is_none());
        let table = Table::new("| a | b |", "|---|---|", 80).expect("a table");
        assert_eq!(plain(&table.finish()), ["a       │ b", "────────┼────────"]);
    }

    #[test]
    fn bars_can_be_escaped() {
        assert_eq!(cells(r"| a \| b | `c` ||"), ["a | b", "`c`", ""]);
        assert_eq!(cells("a|b"), ["a", "b"]);
    }

    #[test]
    fn narrow_terminals_get_lower_rows() {
        assert_eq!(fit(vec![30, 5, 20], 40), [17, 5, 17]);
        assert_eq!(fit(vec![30, 30], 7), Vec::<usize>::new());
        let mut table = Table::new("|a|b|c|", "|-|-|-|", 10).expect("a table");
        assert_eq!(plain(&table.row("|one|two|three|")), ["a │ b │ c", "one │ two", "│ three"]);
    }
}
