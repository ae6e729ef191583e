//! Makes untrusted text safe to show: it cannot move the cursor, hide characters, or change the direction of the line.

use std::fmt::Write;
use std::io;

use serde::Serialize;

/// Escapes control, bidirectional, zero-width and tag characters. Newlines and tabs are kept.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    for character in text.chars() {
        // Emoji need joiners and variation selectors, which are invisible anywhere else.
        let emoji = matches!(character, '\u{fe0f}' | '\u{200d}')
            && matches!(before, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}');
        before = character;
        if is_deceptive(character) && !emoji && !matches!(character, '\n' | '\t') {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\u{{{:x}}}", character as u32);
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Escapes like [`escape`], and also newlines and tabs, so that the text stays on one line.
#[must_use]
pub fn escape_line(text: &str) -> String {
    if !text.contains(is_deceptive) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|character| if is_deceptive(character) { character.escape_default().collect::<Vec<_>>() } else { vec![character] })
        .collect()
}

/// Writes a value as JSON on one line, with deceptive characters as `\u` escapes. Parsers read the same value, and a terminal shows it
/// safely.
#[must_use]
pub fn json(value: &serde_json::Value) -> String {
    let mut text = Vec::new();
    // Writing to memory cannot fail, and every `Value` can be serialised.
    let _ = write_json(&mut text, value);
    String::from_utf8(text).unwrap_or_default()
}

/// Writes a value like [`json`], but to a writer instead of a string.
///
/// # Errors
/// If the writer fails.
pub fn write_json(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, EscapingFormatter)).map_err(Into::into)
}

/// Escapes deceptive characters in strings. Outside of strings, JSON has none.
struct EscapingFormatter;

impl serde_json::ser::Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, character)) = rest.char_indices().find(|(_, character)| is_deceptive(*character)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Shortens a text to about `length` characters by omitting its middle, and states how many characters are missing. Both ends stay visible.
#[must_use]
pub fn shorten(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    let count = text.chars().count();
    let keep = length / 2;
    if count <= keep * 2 {
        return text.to_owned();
    }
    let offset = |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(offset, _)| offset);
    cut(text, offset(keep), offset(count - keep))
}

/// Shortens like [`shorten`], but never cuts a word, because the redactor could not find half a secret.
#[must_use]
pub fn shorten_words(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    let is_word = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | '+' | '/' | '=' | '~' | '%');
    let (head, rest) = text.split_at(text.floor_char_boundary(length / 2));
    let head = if rest.starts_with(is_word) { head.trim_end_matches(is_word) } else { head };
    let (rest, tail) = text.split_at(text.ceil_char_boundary(text.len() - length / 2));
    let tail = if rest.ends_with(is_word) { tail.trim_start_matches(is_word) } else { tail };
    cut(text, head.len(), text.len() - tail.len())
}

/// Shortens like [`shorten`], but keeps at most `most` bytes of the text, in whole characters.
#[must_use]
pub fn shorten_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    cut(text, text.floor_char_boundary(most / 2), text.ceil_char_boundary(text.len() - most / 2))
}

/// Replaces the bytes from `head` to `tail` with a note.
fn cut(text: &str, head: usize, tail: usize) -> String {
    format!("{}…[{} characters left out]…{}", &text[..head], text[head..tail].chars().count(), &text[tail..])
}

/// Returns whether a character is invisible or changes how other characters are shown: controls, bidirectional marks, joiners, and every
/// default-ignorable code point.
#[must_use]
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(escape("a\u{1b}[31mb\u{202e}c\u{200b}d\u{e0041}\te\nf"), "a\\u{1b}[31mb\\u{202e}c\\u{200b}d\\u{e0041}\te\nf");
        assert_eq!(escape("naïve 中文 🙂 ❤️ 👩‍🚀"), "naïve 中文 🙂 ❤️ 👩‍🚀");
        for hidden in ['\u{3164}', '\u{115f}', '\u{fe01}', '\u{e0100}', '\u{2800}', '\u{34f}', '\u{9b}'] {
            assert_ne!(escape(&format!("wipe{hidden}")), format!("wipe{hidden}"), "{hidden:?}");
        }
        assert_eq!(escape_line("a\nb\u{200b}é"), "a\\nb\\u{200b}é");
    }

    #[test]
    fn json_says_the_same_without_deceptive_characters() {
        let value = serde_json::json!({"\u{202e}key": ["\u{9b}31m \u{7f}\u{85}\u{200b}", "\u{e0041}\u{e007f}", "é 中 🙂 \\u009b \" \n"]});
        let text = json(&value);
        assert!(!text.contains(is_deceptive), "{text:?}");
        assert!(text.contains(r"\u009b31m \u007f\u0085\u200b") && text.contains(r"\udb40\udc41") && text.contains("é 中 🙂"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
        assert_eq!(json(&serde_json::json!({"a": "plain"})), r#"{"a":"plain"}"#);
    }

    #[test]
    fn both_ends_of_a_long_text_stay() {
        let long = format!("start{}end", "x".repeat(1000));
        let short = shorten(&long, 20);
        assert_eq!(short, "startxxxxx…[988 characters left out]…xxxxxxxend");
        assert_eq!(shorten("short", 20), "short");
        assert_eq!(shorten("ééééé", 6), "ééééé");
        assert_eq!(shorten_bytes(&long, 20), short);
    }

    #[test]
    fn bytes_are_left_out_by_whole_characters() {
        assert_eq!(shorten_bytes("ééééé", 6), "é…[3 characters left out]…é");
        for (character, text) in [("字", "字".repeat(100)), ("🦀", "🦀".repeat(100)), ("é", format!("x{}y", "é".repeat(100)))] {
            for most in 0..text.len() {
                let short = shorten_bytes(&text, most);
                let (head, rest) = short.split_once("…[").expect("a head");
                let (missing, tail) = rest.split_once(" characters left out]…").expect("a tail");
                assert!(text.starts_with(head) && text.ends_with(tail) && head.len() + tail.len() <= most, "{character} {most}: {short}");
                let left = head.chars().count() + tail.chars().count();
                assert_eq!(missing.parse::<usize>().ok(), Some(text.chars().count() - left), "{character} {most}: {short}");
            }
            assert_eq!(shorten_bytes(&text, text.len()), text);
        }
    }

    #[test]
    fn a_word_is_shown_whole_or_not_at_all() {
        let text = format!("the key sk-12345678901234567890 is wrong {} sk-abcdefghijklmnopqrst ends it", "so ".repeat(200));
        for length in 0..120 {
            let short = shorten_words(&text, length);
            for (whole, part) in [("sk-12345678901234567890", "sk-1"), ("sk-abcdefghijklmnopqrst", "qrst")] {
                assert!(short.contains(whole) || !short.contains(part), "{length}: {short}");
            }
        }
        assert_eq!(shorten_words("short", 20), "short");
        assert_eq!(shorten_words(&"x".repeat(50), 20), "…[50 characters left out]…");
    }
}
