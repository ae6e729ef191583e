//! Text from strangers, made safe to show: nothing in it can move the cursor, hide, or turn the line around.

use std::fmt::Write;

/// Shows control, bidirectional, zero-width and tag characters as escapes. Newlines and tabs stay.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) && !matches!(character, '\n' | '\t') {
            // Writing to a string cannot fail.
            let _ = write!(safe, "\\u{{{:x}}}", character as u32);
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Cuts the middle out of a long text and says how much is missing, so that neither end can hide.
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
    let head: String = text.chars().take(keep).collect();
    let tail: String = text.chars().skip(count - keep).collect();
    format!("{head}…[{} characters left out]…{tail}", count - keep * 2)
}

/// Whether a character shows as something else than it is, or as nothing.
#[must_use]
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(escape("a\u{1b}[31mb\u{202e}c\u{200b}d\u{e0041}\te\nf"), "a\\u{1b}[31mb\\u{202e}c\\u{200b}d\\u{e0041}\te\nf");
        assert_eq!(escape("naïve 中文 🙂"), "naïve 中文 🙂");
    }

    #[test]
    fn both_ends_of_a_long_text_stay() {
        let long = format!("start{}end", "x".repeat(1000));
        let short = shorten(&long, 20);
        assert_eq!(short, "startxxxxx…[988 characters left out]…xxxxxxxend");
        assert_eq!(shorten("short", 20), "short");
        assert_eq!(shorten("ééééé", 6), "ééééé");
    }
}
