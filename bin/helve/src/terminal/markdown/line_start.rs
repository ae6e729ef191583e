//! Recognises the kind of a line from as few of its first characters as possible.

/// Maximum number of bytes of a line to buffer before the line counts as text.
const MAX_HELD: usize = 256;
/// Maximum number of bytes of a table row to buffer.
const MAX_HELD_ROW: usize = 16_384;
/// Maximum depth of quotes.
const MAX_QUOTES: usize = 8;

/// The start of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct LineStart {
    /// Number of `>` at the start.
    pub quotes: usize,
    /// Columns of indentation after the quotes.
    pub indent: usize,
    pub kind: LineKind,
    /// Byte offset of the content.
    pub content: usize,
}

/// The kind of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum LineKind {
    Blank,
    /// A heading, with its level.
    Heading(usize),
    /// A list item, with its marker as the terminal shows it.
    Item(String),
    /// The start of a code block.
    Fence(Fence),
    Rule,
    /// A line that may be a row of a table; always a complete line.
    Row,
    Text,
}

/// The fence of a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    mark: char,
    count: usize,
    /// The info string of the code fence, such as `rust`.
    pub info: String,
}

/// Recognises the start of a line. Returns `None` while the kind of the line is undecided. `ended`: the line is complete. `inside`: the
/// line follows the marker of a list item.
pub fn start(line: &str, ended: bool, inside: bool) -> Option<LineStart> {
    let (quotes, after) = if inside { (0, 0) } else { quotes(line, MAX_QUOTES) };
    let (indent, block) = indent(line, after);
    let rest = &line[block..];
    let (kind, content) = match kind(rest, ended) {
        Some((kind, length)) => (kind, block + length),
        None if ended || line.len() > if rest.starts_with('|') { MAX_HELD_ROW } else { MAX_HELD } => (LineKind::Text, block),
        None => return None,
    };
    Some(LineStart { quotes, indent, kind, content })
}

/// The kind of a line in a code block.
#[derive(Debug, PartialEq, Eq)]
pub enum CodeLine {
    /// A line of code, which starts at this byte offset.
    Code(usize),
    /// The closing fence.
    Close,
    /// A line outside the quote around the block, which ends the block.
    Left,
}

/// Recognises a line in a code block whose opening fence has this depth of quotes and this indentation.
pub fn inside(line: &str, ended: bool, fence: &Fence, quotes: usize, indent: usize) -> Option<CodeLine> {
    let (found, after) = self::quotes(line, quotes);
    if found < quotes {
        let open = line[after..].chars().all(|character| character == ' ') && !ended;
        return if open && line.len() <= MAX_HELD { None } else { Some(CodeLine::Left) };
    }
    let rest = &line[after..];
    let spaces = rest.len() - rest.trim_start_matches(' ').len();
    let code = after + spaces.min(indent);
    let marks = rest[spaces..].chars().take_while(|character| *character == fence.mark).count();
    let tail = &rest[spaces + marks..];
    let may_close = spaces <= indent + 3 && tail.trim_end_matches(' ').is_empty() && (tail.is_empty() || marks >= fence.count);
    match (may_close, ended) {
        (true, true) if marks >= fence.count => Some(CodeLine::Close),
        (true, false) if line.len() <= MAX_HELD => None,
        _ => Some(CodeLine::Code(code)),
    }
}

/// Returns the number of quote markers at the start of a line, and the byte offset of their end.
fn quotes(line: &str, most: usize) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    while count < most {
        let rest = &line[end..];
        let mark = rest.trim_start_matches(' ');
        if rest.len() - mark.len() > 3 || !mark.starts_with('>') {
            break;
        }
        end = line.len() - mark.len() + 1;
        end += usize::from(line[end..].starts_with(' '));
        count += 1;
    }
    (count, end)
}

/// Returns the columns of indentation from a byte offset on, and the byte offset of their end.
fn indent(line: &str, from: usize) -> (usize, usize) {
    let mut columns = 0;
    for (offset, character) in line[from..].char_indices() {
        match character {
            ' ' => columns += 1,
            '\t' => columns += 4 - columns % 4,
            _ => return (columns, from + offset),
        }
    }
    (columns, line.len())
}

/// Returns the kind of a line, and the length of its marker in bytes.
fn kind(rest: &str, ended: bool) -> Option<(LineKind, usize)> {
    let text = Some((LineKind::Text, 0));
    let Some(first) = rest.chars().next() else { return ended.then_some((LineKind::Blank, 0)) };
    // Checked first: rows are long, and this runs for each of their characters.
    if first == '|' {
        return ended.then_some((LineKind::Row, 0));
    }
    let run = rest.chars().take_while(|character| *character == first).count();
    let after = rest[first.len_utf8() * run..].chars().next();
    match first {
        '#' if run > 6 => text,
        '#' => match after {
            None if !ended => None,
            None | Some(' ' | '\t') => Some((LineKind::Heading(run), run)),
            Some(_) => text,
        },
        '-' | '*' | '+' | '_' => {
            if first != '+' && rest.chars().all(|character| character == first || character == ' ') {
                let rule = rest.chars().filter(|character| *character == first).count() >= 3;
                return match (ended, rule) {
                    (true, true) => Some((LineKind::Rule, rest.len())),
                    (true, false) if first != '_' && run == 1 => Some((LineKind::Item("•".to_owned()), 1)),
                    (true, false) => text,
                    (false, _) => None,
                };
            }
            match after {
                None if run == 1 && !ended => None,
                None | Some(' ' | '\t') if run == 1 && first != '_' => Some((LineKind::Item("•".to_owned()), 1)),
                _ => text,
            }
        }
        '0'..='9' => number(rest, ended),
        '`' | '~' if run < 3 => {
            if after.is_none() && !ended {
                None
            } else {
                text
            }
        }
        '`' | '~' => {
            let info = &rest[run..];
            if first == '`' && info.contains('`') {
                return text;
            }
            ended.then(|| (LineKind::Fence(Fence { mark: first, count: run, info: info.trim().to_owned() }), rest.len()))
        }
        _ => text,
    }
}

/// Recognises an ordered list item: `1.` or `1)` before a space.
fn number(rest: &str, ended: bool) -> Option<(LineKind, usize)> {
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let mut after = rest[digits..].chars();
    match (after.next(), after.next()) {
        (None, _) | (Some('.' | ')'), None) if !ended && digits <= 9 => None,
        (Some('.' | ')'), None | Some(' ' | '\t')) if digits <= 9 => Some((LineKind::Item(rest[..=digits].to_owned()), digits + 1)),
        _ => Some((LineKind::Text, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of a complete line.
    fn whole(line: &str) -> LineKind {
        start(line, true, false).expect("a whole line is decided").kind
    }

    /// After how many characters a line is decided.
    fn decided(line: &str) -> Option<usize> {
        (1..=line.len()).find(|length| start(&line[..*length], false, false).is_some())
    }

    #[test]
    fn lines_are_what_they_look_like() {
        assert_eq!(whole("## Title"), LineKind::Heading(2));
        assert_eq!(whole("#"), LineKind::Heading(1));
        assert_eq!(whole("#hashtag"), LineKind::Text);
        assert_eq!(whole("####### seven"), LineKind::Text);
        for item in ["- a", "* a", "+ a", "-", "- -"] {
            assert_eq!(whole(item), LineKind::Item("•".to_owned()), "{item}");
        }
        for rule in ["---", "***", "_ _ _", "----------"] {
            assert_eq!(whole(rule), LineKind::Rule, "{rule}");
        }
        for text in ["-a", "--flag", "**bold**", "_it_", "__", "--", "1.5", "1", "1234567890. x", "`code`", "```one line```", "~a", "a"] {
            assert_eq!(whole(text), LineKind::Text, "{text}");
        }
        assert_eq!(whole("12) x"), LineKind::Item("12)".to_owned()));
        assert_eq!(whole("   "), LineKind::Blank);
        assert_eq!(whole("| a | b |"), LineKind::Row);
        assert!(matches!(whole("~~~ rust `x`"), LineKind::Fence(fence) if fence.info == "rust `x`" && fence.count == 3));
    }

    #[test]
    fn little_is_held_back() {
        assert_eq!(decided("word"), Some(1));
        assert_eq!(decided("- word"), Some(3));
        assert_eq!(decided("# word"), Some(2));
        assert_eq!(decided("**word"), Some(3));
        assert_eq!(decided("10 words"), Some(3));
        assert_eq!(decided("> word"), Some(3));
        assert_eq!(decided("```rust"), None);
        assert_eq!(decided(&"-".repeat(1000)), Some(MAX_HELD + 1));
        assert_eq!(decided(&">".repeat(1000)), Some(MAX_QUOTES + 1));
    }

    #[test]
    fn quotes_and_spaces_are_counted() {
        let found = start("> >  - x", true, false).expect("decided");
        assert_eq!((found.quotes, found.indent, &found.kind), (2, 1, &LineKind::Item("•".to_owned())));
        let found = start("\t x", true, false).expect("decided");
        assert_eq!((found.indent, found.content), (5, 2));
    }

    #[test]
    fn a_code_block_ends_with_its_fence() {
        let fence = Fence { mark: '`', count: 3, info: String::new() };
        let whole = |line, quotes, indent| inside(line, true, &fence, quotes, indent).expect("decided");
        assert_eq!(whole("```", 0, 0), CodeLine::Close);
        assert_eq!(whole("  ````  ", 0, 2), CodeLine::Close);
        assert_eq!(whole("```x", 0, 0), CodeLine::Code(0));
        assert_eq!(whole("``", 0, 0), CodeLine::Code(0));
        assert_eq!(whole("    x", 0, 2), CodeLine::Code(2));
        assert_eq!(whole("", 0, 2), CodeLine::Code(0));
        assert_eq!(whole("> ```", 1, 0), CodeLine::Close);
        assert_eq!(whole("x", 1, 0), CodeLine::Left);
        assert_eq!(inside("``", false, &fence, 0, 0), None);
        assert_eq!(inside("x", false, &fence, 0, 0), Some(CodeLine::Code(0)));
        assert_eq!(inside("> ", false, &fence, 1, 0), None);
    }
}
