//! Prepares untrusted text for a line of a prompt: puts it on one line, limits its length, and removes hidden characters.

/// Maximum length of a tool or parameter name, in bytes. The parser rejects longer names.
const MAX_NAME: usize = 256;
/// Maximum length of a description in a compact list, in characters.
const MAX_SENTENCE: usize = 160;

/// Returns whether a tool name can be written without quotes or escapes in all formats.
pub(super) fn is_name(name: &str) -> bool {
    let breaks = |c: char| c.is_whitespace() || is_hidden(c) || matches!(c, '<' | '>' | '{' | '}' | '"' | '\'' | '`' | '&' | '\\');
    !name.is_empty() && name.len() <= MAX_NAME && !name.contains(breaks)
}

/// Returns whether a parameter name is a valid XML element name.
pub(super) fn is_element(name: &str) -> bool {
    crate::xml::starts_name(name) && is_name(name) && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
}

/// Returns a parameter name on one line, in quotes if it has special characters. Returns `None` if the name is too long.
pub(super) fn shown_name(name: &str) -> Option<String> {
    match name {
        plain if is_name(plain) => Some(plain.to_owned()),
        long if long.len() > MAX_NAME => None,
        odd => Some(line(&super::write::json(&odd.into()), MAX_NAME * 6)),
    }
}

/// Returns the text on one line, without hidden characters, cut off after `most` characters.
pub(super) fn line(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most * 4));
    let mut count = 0;
    let mut space = false;
    for character in text.chars() {
        if character.is_whitespace() {
            space = !out.is_empty();
            continue;
        }
        if is_hidden(character) {
            continue;
        }
        if count + usize::from(space) >= most {
            out.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
            count += 1;
        }
        out.push(character);
        count += 1;
    }
    out
}

/// Returns the first sentence of a description, on one line.
pub(super) fn sentence(text: &str) -> String {
    // A blank line also ends a sentence.
    let first = text.trim().split("\n\n").next().unwrap_or_default();
    let whole = line(first, super::MAX_DESCRIPTION);
    let ends = |at: usize, mark: char| {
        let after = &whole[at + mark.len_utf8()..];
        matches!(mark, '。' | '！' | '？') || after.is_empty() || after.starts_with(' ') && !abbreviates(&whole[..at])
    };
    let end = whole.char_indices().find(|(at, c)| matches!(c, '.' | '!' | '?' | '。' | '！' | '？') && ends(*at, *c));
    line(end.map_or(whole.as_str(), |(at, c)| &whole[..at + c.len_utf8()]), MAX_SENTENCE)
}

/// Returns whether the full stop after this text belongs to an abbreviation, such as `e.g.`.
fn abbreviates(before: &str) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    word.contains('.') || matches!(word, "etc" | "vs" | "No" | "approx")
}

/// Returns whether a character is a control character, reorders text, or is invisible although a model reads it. Joiners are not hidden,
/// because scripts and emoji need them.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_on_its_line() {
        assert_eq!(line("  a\n\n## b\tc\u{1b}[0m\u{e0041}\u{202e}d \n", 100), "a ## b c[0md");
        assert_eq!(line("abcdef", 3), "abc…");
        assert_eq!(line("abc", 3), "abc");
        assert_eq!(line("ab cd", 3), "ab…");
        assert_eq!(line("天气很好", 2), "天气…");
    }

    #[test]
    fn the_first_sentence_is_found() {
        for (text, first) in [
            ("Reads a file. Then more.", "Reads a file."),
            ("Reads e.g. a file. More", "Reads e.g. a file."),
            ("Version 1.5 of it", "Version 1.5 of it"),
            ("查询天气。支持全国。", "查询天气。"),
            ("No stop\n\nsecond paragraph", "No stop"),
            ("", ""),
        ] {
            assert_eq!(sentence(text), first);
        }
    }

    #[test]
    fn names_that_would_break_a_line_are_none() {
        assert!(is_name("web_search") && is_name("查询-天气") && is_name("a/b.c"));
        for name in ["", "a b", "a\nb", "<a>", "a\"", "a\u{200b}b", &"x".repeat(257)] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_element("max_results") && is_element("查询"));
        assert!(!is_element("$filter") && !is_element("1st") && !is_element("a/b") && !is_element("a b"));
    }
}
