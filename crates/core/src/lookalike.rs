//! Detects confusable names: reduces a name to a skeleton, which is the same for all names that look alike.

use crate::printable;

/// Letters with the characters of other alphabets that look like them, in both cases. [`plain`] handles compatibility forms.
const DRAWN_ALIKE: [(char, &str); 26] = [
    ('a', "аАαΑɑ"),
    ('b', "ЬьВвβΒƄ"),
    ('c', "сСϲϹᴄ"),
    ('d', "ԁɗ"),
    ('e', "еЕёЁεΕҽ"),
    ('f', "ƒϝ"),
    ('g', "ɡԍց"),
    ('h', "һҺНнΗհ"),
    // Most fonts show these alike.
    ('i', "іІїЇιΙıɩl1|ӏӀǀ"),
    ('j', "јЈϳ"),
    ('k', "кКκΚ"),
    ('m', "мМΜ"),
    ('n', "пηΝո"),
    ('o', "оОοΟσօ0"),
    ('p', "рРρΡ"),
    ('q', "ԛԚգ"),
    ('r', "гᴦ"),
    ('s', "ѕЅꜱ"),
    ('t', "тТτΤ"),
    ('u', "υսꭎ"),
    ('v', "ѵѴν"),
    ('w', "ԝԜωա"),
    ('x', "хХχΧ"),
    ('y', "уУүҮγΥ"),
    ('z', "ΖᴢƵ"),
    ('_', "-. /:~‐‑‒–—―−－．＿·・"),
];

/// Returns the skeleton of a name. Names with the same skeleton are easily confused.
#[must_use]
pub fn skeleton(name: &str) -> String {
    let mut skeleton = String::with_capacity(name.len());
    for character in name.chars().filter(|character| !is_overlooked(*character)) {
        skeleton.extend(plain(character).to_lowercase().map(letter));
    }
    // These pairs of letters look like one letter.
    skeleton.replace("rn", "m").replace("vv", "w")
}

/// Returns the ASCII letter for a full-width, mathematical, circled or confusable character.
fn plain(character: char) -> char {
    let code = u32::from(character);
    let ascii = |first: u8, offset: u32| u8::try_from(offset).map_or(character, |offset| char::from(first + offset));
    match code {
        0xff01..=0xff5e => ascii(b'!', code - 0xff01),
        0x1d400..=0x1d6a3 if (code - 0x1d400) % 52 < 26 => ascii(b'A', (code - 0x1d400) % 52),
        0x1d400..=0x1d6a3 => ascii(b'a', (code - 0x1d400) % 52 - 26),
        0x1d7ce..=0x1d7ff => ascii(b'0', (code - 0x1d7ce) % 10),
        0x24b6..=0x24cf => ascii(b'A', code - 0x24b6),
        0x24d0..=0x24e9 => ascii(b'a', code - 0x24d0),
        _ if character.is_ascii() => character,
        _ => letter(character),
    }
}

/// Returns the letter that stands for a character and all characters that look like it.
fn letter(character: char) -> char {
    DRAWN_ALIKE.iter().find(|(_, others)| others.contains(character)).map_or(character, |(letter, _)| *letter)
}

/// Returns whether readers overlook a character because it is invisible or a combining mark.
fn is_overlooked(character: char) -> bool {
    printable::is_deceptive(character) || matches!(character, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// Returns a name with every non-ASCII character written as an escape.
#[must_use]
pub fn written_out(name: &str) -> String {
    let out = |character: char| if character.is_ascii_graphic() { character.to_string() } else { character.escape_unicode().to_string() };
    name.chars().map(out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_have_one_skeleton() {
        let skeleton_of_get_time = skeleton("get_time");
        for name in [
            "get_time",
            "g\u{435}t_time",
            "GET_TIME",
            "Get-Time",
            "get.time",
            "ｇｅｔ＿ｔｉｍｅ",
            "get\u{200b}_time",
            "get_t\u{131}me",
            "get_tlme",
            "get_t1me",
            "GΕT_ΤΙΜΕ",
            "get\u{2010}time",
            "𝐠𝐞𝐭_𝘵𝘪𝘮𝘦",
            "ge\u{301}t_time",
            "get_tirne",
            "get_time\u{e0041}",
        ] {
            assert_eq!(skeleton(name), skeleton_of_get_time, "{name}");
        }
        for name in ["get_times", "gettime", "set_time", "get_time_", "get_date", "时间"] {
            assert_ne!(skeleton(name), skeleton_of_get_time, "{name}");
        }
    }

    #[test]
    fn a_name_that_is_written_out_cannot_be_mistaken() {
        assert_eq!(written_out("g\u{435}t_time"), "g\\u{435}t_time");
        assert_eq!(written_out("a\u{200b} b"), "a\\u{200b}\\u{20}b");
        assert_eq!(written_out("get_time"), "get_time");
    }
}
