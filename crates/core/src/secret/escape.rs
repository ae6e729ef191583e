//! Decoders for escapes that can hide a secret in text: percent-encoding, backslashes of JSON and shells, HTML entities. The decoders are
//! lenient, because their output is only compared with known secrets.

/// A decoder for one kind of escape at the start of a text.
pub(super) type Reader = fn(&[u8]) -> Escape;

/// The result of decoding an escape at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// The text does not start with an escape.
    None,
    /// The text ends within an escape.
    Open,
    /// The text starts with an escape of this length in bytes, which means this unit.
    Read(usize, Unit),
}

/// A character, or one byte of it, that an escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    bytes: [u8; 4],
    length: usize,
}

impl Unit {
    fn byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], length: 1 }
    }

    fn char(character: char) -> Self {
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        Self { bytes, length }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// All decoders. The last one is needed only if a secret contains a space.
pub(super) const READERS: [Reader; 4] = [percent, backslash, entity, form];

/// Returns whether an escape can start with `byte`.
pub(super) fn may_begin(byte: u8) -> bool {
    matches!(byte, b'%' | b'+' | b'\\' | b'\'' | b'&')
}

/// Decodes `%2F`.
fn percent(text: &[u8]) -> Escape {
    if text.first() == Some(&b'%') { number(text, 1, 2, |code| u8::try_from(code).ok().map(Unit::byte)) } else { Escape::None }
}

/// Decodes `%2F`, and `+` as a space, as in HTML forms.
fn form(text: &[u8]) -> Escape {
    if text.first() == Some(&b'+') { Escape::Read(1, Unit::byte(b' ')) } else { percent(text) }
}

/// Decodes `\"`, `\/`, ` `, `\u002f` and `\x2f`, and escaped quotes inside single quotes of shells.
fn backslash(text: &[u8]) -> Escape {
    match text {
        [b'\'', ..] => quote(text),
        [b'\\'] => Escape::Open,
        [b'\\', b'u', ..] => code_unit(text),
        [b'\\', b'x', ..] => number(text, 2, 2, |code| u8::try_from(code).ok().map(Unit::byte)),
        [b'\\', letter, ..] => match letter {
            b'n' => Escape::Read(2, Unit::byte(b'\n')),
            b't' => Escape::Read(2, Unit::byte(b'\t')),
            b'r' => Escape::Read(2, Unit::byte(b'\r')),
            b'b' => Escape::Read(2, Unit::byte(8)),
            b'f' => Escape::Read(2, Unit::byte(12)),
            byte if byte.is_ascii() && !byte.is_ascii_alphanumeric() => Escape::Read(2, Unit::byte(*byte)),
            _ => Escape::None,
        },
        _ => Escape::None,
    }
}

/// Decodes `'\''` and `'"'"'`.
fn quote(text: &[u8]) -> Escape {
    let ways: [&[u8]; 2] = [b"'\\''", b"'\"'\"'"];
    for way in ways {
        if text.starts_with(way) {
            return Escape::Read(way.len(), Unit::byte(b'\''));
        }
        if way.starts_with(text) {
            return Escape::Open;
        }
    }
    Escape::None
}

/// Decodes `\u002f`, or a surrogate pair.
fn code_unit(text: &[u8]) -> Escape {
    let first = match digits(text, 2, 4) {
        Ok(code) => code,
        Err(escape) => return escape,
    };
    if let Some(character) = char::from_u32(first) {
        return Escape::Read(6, Unit::char(character));
    }
    let next = text.get(6..).unwrap_or_default();
    if !next.starts_with(b"\\u") {
        return if b"\\u".starts_with(next) { Escape::Open } else { Escape::None };
    }
    let second = match digits(next, 2, 4) {
        Ok(code) => code,
        Err(escape) => return escape,
    };
    let is_pair = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second);
    let pair = is_pair.then(|| 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)).and_then(char::from_u32);
    pair.map_or(Escape::None, |character| Escape::Read(12, Unit::char(character)))
}

/// Decodes `&amp;`, `&#47;` and `&#x2f;`.
fn entity(text: &[u8]) -> Escape {
    const LONGEST: usize = 10;
    if text.first() != Some(&b'&') {
        return Escape::None;
    }
    let shown = text.get(..LONGEST).unwrap_or(text);
    let Some(end) = shown.iter().position(|byte| *byte == b';') else {
        let goes_on = text.len() < LONGEST && text.iter().skip(1).all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
        return if goes_on { Escape::Open } else { Escape::None };
    };
    let name = std::str::from_utf8(shown.get(1..end).unwrap_or_default()).unwrap_or_default();
    let character = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => name.strip_prefix('#').and_then(|code| {
            let code = match code.strip_prefix(['x', 'X']) {
                Some(code) => u32::from_str_radix(code, 16),
                None => code.parse(),
            };
            code.ok().and_then(char::from_u32)
        }),
    };
    character.map_or(Escape::None, |character| Escape::Read(end + 1, Unit::char(character)))
}

/// Decodes an escape that ends with `count` hexadecimal digits, which start at offset `from`.
fn number(text: &[u8], from: usize, count: usize, unit: impl Fn(u32) -> Option<Unit>) -> Escape {
    match digits(text, from, count) {
        Ok(code) => unit(code).map_or(Escape::None, |unit| Escape::Read(from + count, unit)),
        Err(escape) => escape,
    }
}

fn digits(text: &[u8], from: usize, count: usize) -> Result<u32, Escape> {
    let digits = text.get(from..).unwrap_or_default();
    let digits = digits.get(..count).unwrap_or(digits);
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Escape::None);
    }
    if digits.len() < count {
        return Err(Escape::Open);
    }
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    u32::from_str_radix(digits, 16).map_err(|_| Escape::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: Reader, text: &str) -> Option<(usize, String)> {
        match reader(text.as_bytes()) {
            Escape::Read(length, unit) => Some((length, String::from_utf8_lossy(unit.as_bytes()).into_owned())),
            Escape::Open => Some((0, String::new())),
            Escape::None => None,
        }
    }

    #[test]
    fn escapes_are_read_in_either_case_and_wait_for_their_end() {
        let slash = |length| Some((length, "/".to_owned()));
        let open = Some((0, String::new()));
        for text in ["%2Fx", "%2f"] {
            assert_eq!(read(percent, text), slash(3), "{text}");
        }
        assert_eq!(read(form, "+x"), Some((1, " ".to_owned())));
        assert_eq!(read(percent, "+x"), None);
        assert_eq!((read(percent, "%2"), read(percent, "%"), read(percent, "%zz")), (open.clone(), open.clone(), None));
        assert_eq!((read(backslash, "\\/"), read(backslash, "\\u002Fx"), read(backslash, "\\u002f")), (slash(2), slash(6), slash(6)));
        assert_eq!(read(backslash, "\\ud83D\\uDE00"), Some((12, "😀".to_owned())));
        for text in ["\\", "\\u", "\\u00", "\\ud83d", "\\ud83d\\", "\\ud83d\\ude", "'", "'\\'", "'\"'"] {
            assert_eq!(read(backslash, text), open, "{text}");
        }
        assert_eq!((read(backslash, "\\q"), read(backslash, "\\ud83dx"), read(backslash, "'a")), (None, None, None));
        for text in ["'\\''", "'\"'\"'"] {
            assert_eq!(read(backslash, text), Some((text.len(), "'".to_owned())));
        }
        assert_eq!((read(entity, "&#47;"), read(entity, "&#x2f;"), read(entity, "&#X2F;")), (slash(5), slash(6), slash(6)));
        assert_eq!((read(entity, "&amp;"), read(entity, "&am")), (Some((5, "&".to_owned())), open));
        assert_eq!((read(entity, "&nothing;"), read(entity, "& co"), read(entity, "&#x110000;")), (None, None, None));
    }
}
