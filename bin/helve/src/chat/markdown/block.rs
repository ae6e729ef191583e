//! What a line is, told from as few of its first characters as possible.

/// How much of a line is held back before it is taken for text.
const HELD: usize = 256;
/// How much of a row of a table is held back.
const HELD_ROW: usize = 16_384;
/// How deep quotes are followed.
const QUOTES: usize = 8;

/// The start of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Start {
    /// How many `>` stand before everything else.
    pub quotes: usize,
    /// How many columns of space stand before the block, after the quotes.
    pub indent: usize,
    pub kind: Kind,
    /// Where the content begins, in bytes.
    pub content: usize,
}

/// What kind of line it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Blank,
    /// With its level.
    Heading(usize),
    /// An item of a list, with its marker as it is shown.
    Item(String),
    /// The start of a code block.
    Fence(Fence),
    Rule,
    /// The whole row of what may be a table.
    Row,
    Text,
}

/// The fence of a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    mark: char,
    count: usize,
    /// What it says about its content, such as the language.
    pub info: String,
}

/// Reads the start of a line; nothing while more of it is needed. `ended` says that there is no more, and `inside` that
/// the marker of a list item stands before it.
pub fn start(line: &str, ended: bool, inside: bool) -> Option<Start> {
    let (quotes, after) = if inside { (0, 0) } else { quotes(line, QUOTES) };
    let (indent, block) = indent(line, after);
    let rest = &line[block..];
    let (kind, content) = match kind(rest, ended) {
        Some((kind, length)) => (kind, block + length),
        None if ended || line.len() > if rest.starts_with('|') { HELD_ROW } else { HELD } => (Kind::Text, block),
        None => return None,
    };
    Some(Start { quotes, indent, kind, content })
}

/// What a line in a code block is.
#[derive(Debug, PartialEq, Eq)]
pub enum Inside {
    /// A line of code that begins at this byte.
    Code(usize),
    /// The fence that closes the block.
    Close,
    /// The quote that the block stands in is over, and the block with it.
    Left,
}

/// Reads the start of a line in a code block whose fence stands behind so many quotes and so much space.
pub fn inside(line: &str, ended: bool, fence: &Fence, quotes: usize, indent: usize) -> Option<Inside> {
    let (found, after) = self::quotes(line, quotes);
    if found < quotes {
        let open = line[after..].chars().all(|character| character == ' ') && !ended;
        return if open && line.len() <= HELD { None } else { Some(Inside::Left) };
    }
    let rest = &line[after..];
    let spaces = rest.len() - rest.trim_start_matches(' ').len();
    let code = after + spaces.min(indent);
    let marks = rest[spaces..].chars().take_while(|character| *character == fence.mark).count();
    let tail = &rest[spaces + marks..];
    let may_close = spaces <= indent + 3 && tail.trim_end_matches(' ').is_empty() && (tail.is_empty() || marks >= fence.count);
    match (may_close, ended) {
        (true, true) if marks >= fence.count => Some(Inside::Close),
        (true, false) if line.len() <= HELD => None,
        _ => Some(Inside::Code(code)),
    }
}

/// Counts the quotes at the start of a line, and says where they end.
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

/// Counts the columns of space from a place on, and says where they end.
fn indent(line: &str, from: usize) -> (usize, usize) {
    let mut columns = 0;
    for (place, character) in line[from..].char_indices() {
        match character {
            ' ' => columns += 1,
            '\t' => columns += 4 - columns % 4,
            _ => return (columns, from + place),
        }
    }
    (columns, line.len())
}

/// The kind of a block and the length of its marker.
fn kind(rest: &str, ended: bool) -> Option<(Kind, usize)> {
    let text = Some((Kind::Text, 0));
    let Some(first) = rest.chars().next() else { return ended.then_some((Kind::Blank, 0)) };
    // A row is long, and asked about with each of its characters.
    if first == '|' {
        return ended.then_some((Kind::Row, 0));
    }
    let run = rest.chars().take_while(|character| *character == first).count();
    let after = rest[first.len_utf8() * run..].chars().next();
    match first {
        '#' if run > 6 => text,
        '#' => match after {
            None if !ended => None,
            None | Some(' ' | '\t') => Some((Kind::Heading(run), run)),
            Some(_) => text,
        },
        '-' | '*' | '+' | '_' => {
            if first != '+' && rest.chars().all(|character| character == first || character == ' ') {
                let rule = rest.chars().filter(|character| *character == first).count() >= 3;
                return match (ended, rule) {
                    (true, true) => Some((Kind::Rule, rest.len())),
                    (true, false) if first != '_' && run == 1 => Some((Kind::Item("•".to_owned()), 1)),
                    (true, false) => text,
                    (false, _) => None,
                };
            }
            match after {
                None if run == 1 && !ended => None,
                None | Some(' ' | '\t') if run == 1 && first != '_' => Some((Kind::Item("•".to_owned()), 1)),
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
            ended.then(|| (Kind::Fence(Fence { mark: first, count: run, info: info.trim().to_owned() }), rest.len()))
        }
        _ => text,
    }
}

/// `1.` or `1)` before a space.
fn number(rest: &str, ended: bool) -> Option<(Kind, usize)> {
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let mut after = rest[digits..].chars();
    match (after.next(), after.next()) {
        (None, _) | (Some('.' | ')'), None) if !ended && digits <= 9 => None,
        (Some('.' | ')'), None | Some(' ' | '\t')) if digits <= 9 => Some((Kind::Item(rest[..=digits].to_owned()), digits + 1)),
        _ => Some((Kind::Text, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of a line that came whole.
    fn whole(line: &str) -> Kind {
        start(line, true, false).expect("a whole line is decided").kind
    }

    /// After how many characters a line is decided.
    fn decided(line: &str) -> Option<usize> {
        (1..=line.len()).find(|length| start(&line[..*length], false, false).is_some())
    }

    #[test]
    fn lines_are_what_they_look_like() {
        assert_eq!(whole("## Title"), Kind::Heading(2));
        assert_eq!(whole("#"), Kind::Heading(1));
        assert_eq!(whole("#hashtag"), Kind::Text);
        assert_eq!(whole("####### seven"), Kind::Text);
        for item in ["- a", "* a", "+ a", "-", "- -"] {
            assert_eq!(whole(item), Kind::Item("•".to_owned()), "{item}");
        }
        for rule in ["---", "***", "_ _ _", "----------"] {
            assert_eq!(whole(rule), Kind::Rule, "{rule}");
        }
        for text in ["-a", "--flag", "**bold**", "_it_", "__", "--", "1.5", "1", "1234567890. x", "`code`", "```one line```", "~a", "a"] {
            assert_eq!(whole(text), Kind::Text, "{text}");
        }
        assert_eq!(whole("12) x"), Kind::Item("12)".to_owned()));
        assert_eq!(whole("   "), Kind::Blank);
        assert_eq!(whole("| a | b |"), Kind::Row);
        assert!(matches!(whole("~~~ rust `x`"), Kind::Fence(fence) if fence.info == "rust `x`" && fence.count == 3));
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
        assert_eq!(decided(&"-".repeat(1000)), Some(HELD + 1));
        assert_eq!(decided(&">".repeat(1000)), Some(QUOTES + 1));
    }

    #[test]
    fn quotes_and_spaces_are_counted() {
        let found = start("> >  - x", true, false).expect("decided");
        assert_eq!((found.quotes, found.indent, &found.kind), (2, 1, &Kind::Item("•".to_owned())));
        let found = start("\t x", true, false).expect("decided");
        assert_eq!((found.indent, found.content), (5, 2));
    }

    #[test]
    fn a_code_block_ends_with_its_fence() {
        let fence = Fence { mark: '`', count: 3, info: String::new() };
        let whole = |line, quotes, indent| inside(line, true, &fence, quotes, indent).expect("decided");
        assert_eq!(whole("```", 0, 0), Inside::Close);
        assert_eq!(whole("  ````  ", 0, 2), Inside::Close);
        assert_eq!(whole("```x", 0, 0), Inside::Code(0));
        assert_eq!(whole("``", 0, 0), Inside::Code(0));
        assert_eq!(whole("    x", 0, 2), Inside::Code(2));
        assert_eq!(whole("", 0, 2), Inside::Code(0));
        assert_eq!(whole("> ```", 1, 0), Inside::Close);
        assert_eq!(whole("x", 1, 0), Inside::Left);
        assert_eq!(inside("``", false, &fence, 0, 0), None);
        assert_eq!(inside("x", false, &fence, 0, 0), Some(Inside::Code(0)));
        assert_eq!(inside("> ", false, &fence, 1, 0), None);
    }
}
