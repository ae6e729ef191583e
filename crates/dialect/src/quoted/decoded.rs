//! Decodes escapes of JSON, Markdown and HTML, and removes prefixes of quoted lines.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of ways to decode a text. Escapes may be nested; ways with few steps are tried first.
const MAX_READINGS: usize = 24;

/// Calls `show` with the text itself, and with each way to decode its escapes.
pub(super) fn each_reading(text: &str, show: &mut dyn FnMut(&str)) {
    show(text);
    let mut seen = HashSet::new();
    let mut readings: VecDeque<String> = steps_from(text).filter(|text| seen.insert(hash_of(text))).collect();
    while let Some(text) = readings.pop_front() {
        show(&text);
        for reading in steps_from(&text) {
            if seen.len() < MAX_READINGS && seen.insert(hash_of(&reading)) {
                readings.push_back(reading);
            }
        }
    }
}

/// Returns the texts that result from decoding one kind of escapes.
fn steps_from(text: &str) -> impl Iterator<Item = String> + '_ {
    [without_backslashes, without_entities, without_line_marks].into_iter().filter_map(move |decode| decode(text))
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Decodes the backslash escapes of JSON strings and Markdown. Returns `None` if there are none.
fn without_backslashes(text: &str) -> Option<String> {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let Some(escaped) = behind.chars().next() else {
            rest = behind;
            break;
        };
        let mut length = escaped.len_utf8();
        match escaped {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' | 'f' => out.push(' '),
            'u' => match unicode(&behind[1..]) {
                Some((c, digits)) => {
                    out.push(c);
                    length += digits;
                }
                None => out.push('u'),
            },
            other => out.push(other),
        }
        rest = &behind[length..];
    }
    (rest.len() < text.len()).then(|| out + rest)
}

/// Decodes the digits after `\u`, such as `003c` or `d83e\udd80`. Returns the character and the length of the digits.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |from: usize| text.get(from..from + 4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let first = unit(0)?;
    let second = text.get(4..6).filter(|mark| *mark == "\\u").and_then(|_| unit(6));
    match char::decode_utf16([first].into_iter().chain(second)).next()? {
        Ok(c) => Some((c, if c.len_utf16() == 2 { 10 } else { 4 })),
        Err(_) => Some((char::REPLACEMENT_CHARACTER, 4)),
    }
}

/// Names of HTML entities for characters that occur in the syntax of calls.
const ENTITIES: [(&str, char); 24] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("lbrace", '{'),
    ("lcub", '{'),
    ("rbrace", '}'),
    ("rcub", '}'),
    ("lbrack", '['),
    ("lsqb", '['),
    ("rbrack", ']'),
    ("rsqb", ']'),
    ("lpar", '('),
    ("rpar", ')'),
    ("colon", ':'),
    ("comma", ','),
    ("equals", '='),
    ("lowbar", '_'),
    ("verbar", '|'),
    ("sol", '/'),
];

/// Decodes HTML entities. Returns `None` if there are none.
fn without_entities(text: &str) -> Option<String> {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (c, length) = entity(behind).unwrap_or(('&', 0));
        out.push(c);
        rest = &behind[length..];
    }
    (out.len() + rest.len() < text.len()).then(|| out + rest)
}

/// Returns the character of an entity, and the length of its name with the semicolon.
fn entity(text: &str) -> Option<(char, usize)> {
    let name = text[..text.floor_char_boundary(10)].split(|c: char| !c.is_ascii_alphanumeric() && c != '#').next()?;
    let length = name.len() + usize::from(text[name.len()..].starts_with(';'));
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((c, length))
}

/// Removes line prefixes, such as `> ` in emails and Markdown, or `#` and `//` in comments. Returns `None` if there are none.
fn without_line_marks(text: &str) -> Option<String> {
    let bare = |line: &'_ str| -> usize { line.len() - line.trim_start_matches([' ', '\t', '>', '#', '/', '*', '|']).len() };
    let marked = |line: &str| line[..bare(line)].contains(['>', '#', '/', '*', '|']);
    if !text.lines().any(marked) {
        return None;
    }
    Some(text.lines().map(|line| &line[bare(line)..]).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read() {
        for (text, decoded) in [
            (r#"{\"a\": 1}"#, r#"{"a": 1}"#),
            (r"\u003ctool_call\u003E", "<tool_call>"),
            (r"\ud83e\udd80 \ud83e \n.", "🦀 \u{fffd} \n."),
            (r"\<tool\_call\> \", "<tool_call> "),
        ] {
            assert_eq!(without_backslashes(text).as_deref(), Some(decoded));
        }
        assert_eq!(without_backslashes("plain"), None);
        for (text, decoded) in [
            ("&lt;tool_call&gt;{&quot;a&quot;&colon; 1}", "<tool_call>{\"a\": 1}"),
            ("&#60;a&#x3E; &amp;lt; & &unknown;", "<a> &lt; & &unknown;"),
        ] {
            assert_eq!(without_entities(text).as_deref(), Some(decoded));
        }
        assert_eq!(without_entities("a & b"), None);
        assert_eq!(without_line_marks("a\n  > {\n> }").as_deref(), Some("a\n{\n}"));
        assert_eq!(without_line_marks("a\n  b > c"), None);
    }

    #[test]
    fn escapes_in_escapes_are_read_to_a_bounded_depth() {
        let mut readings = Vec::new();
        each_reading(r#"\\\"&amp;lt;"#, &mut |text| readings.push(text.to_owned()));
        assert!(readings.contains(&"\"<".to_owned()), "{readings:?}");
        let (mut count, deep) = (0, "\\".repeat(1000) + &"&amp;".repeat(100) + "\n> > >");
        each_reading(&deep, &mut |_| count += 1);
        assert!(count <= MAX_READINGS + 1, "{count}");
    }
}
