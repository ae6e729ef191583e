//! Encodings of a secret, to find the secret in text and to restore it in the same encoding.

use serde_json::Value;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// An encoding of a secret.
pub(super) struct Spelling {
    /// The name of the encoding in the store. It must never change.
    pub(super) name: &'static str,
    pub(super) write: fn(&str) -> String,
}

const fn spelling(name: &'static str, write: fn(&str) -> String) -> Spelling {
    Spelling { name, write }
}

/// The encodings that can be restored. A secret in any other encoding is still found, but stays masked.
pub(super) const SPELLINGS: [Spelling; 34] = [
    spelling("plain", str::to_owned),
    spelling("json", json),
    spelling("json-json", |text| json(&json(text))),
    spelling("json-json-json", |text| json(&json(&json(text)))),
    spelling("json-slash", |text| json(text).replace('/', "\\/")),
    spelling("json-ascii", |text| code_units(&json(text), "", LOWER)),
    spelling("json-ascii-upper", |text| code_units(&json(text), "", UPPER)),
    spelling("json-html", |text| code_units(&json(text), "&<>", LOWER)),
    spelling("json-html-upper", |text| code_units(&json(text), "&<>'+", UPPER)),
    spelling("percent", |text| percent(text, "-._~", LOWER)),
    spelling("percent-upper", |text| percent(text, "-._~", UPPER)),
    spelling("percent-component", |text| percent(text, "-._~!'()*", LOWER)),
    spelling("percent-component-upper", |text| percent(text, "-._~!'()*", UPPER)),
    spelling("percent-path", |text| percent(text, "-._~/", LOWER)),
    spelling("percent-path-upper", |text| percent(text, "-._~/", UPPER)),
    spelling("percent-all", |text| percent_all(text, LOWER)),
    spelling("percent-all-upper", |text| percent_all(text, UPPER)),
    spelling("form", |text| percent(text, "-._~ ", LOWER).replace(' ', "+")),
    spelling("form-upper", |text| percent(text, "-._~ ", UPPER).replace(' ', "+")),
    spelling("form-html", |text| percent(text, "*-._ ", LOWER).replace(' ', "+")),
    spelling("form-html-upper", |text| percent(text, "*-._ ", UPPER).replace(' ', "+")),
    spelling("shell", |text| text.replace('\'', "'\\''")),
    spelling("shell-quotes", |text| text.replace('\'', "'\"'\"'")),
    spelling("shell-bare", |text| {
        backslashes(text, |letter| letter.is_ascii() && !letter.is_ascii_alphanumeric() && !"_@%+=:,./-".contains(letter))
    }),
    spelling("shell-double", |text| backslashes(text, |letter| "\"\\$`".contains(letter))),
    spelling("html", |text| html(text, "'")),
    spelling("html-decimal", |text| html(text, "&#39;")),
    spelling("html-hexadecimal", |text| html(text, "&#x27;")),
    spelling("base64", |text| base64(text, 0, STANDARD)),
    spelling("base64-1", |text| base64(text, 1, STANDARD)),
    spelling("base64-2", |text| base64(text, 2, STANDARD)),
    spelling("base64url", |text| base64(text, 0, URL_SAFE)),
    spelling("base64url-1", |text| base64(text, 1, URL_SAFE)),
    spelling("base64url-2", |text| base64(text, 2, URL_SAFE)),
];

/// Returns the patterns to search for: the value, and its Base64 at each of three alignments. Other encodings are found by decoding
/// escapes.
pub(super) fn sought(value: &str) -> Vec<String> {
    let encoded = [STANDARD, URL_SAFE].into_iter().flat_map(|alphabet| (0..3).map(move |offset| base64(value, offset, alphabet)));
    let mut sought: Vec<String> = std::iter::once(value.to_owned()).chain(encoded).collect();
    sought.sort_unstable();
    sought.dedup();
    sought
}

fn json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Escapes the non-ASCII characters of a JSON text, and the characters in `others`, as `\u` escapes.
fn code_units(json: &str, others: &str, digits: &[u8; 16]) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() && !others.contains(letter) {
            text.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let [high, low] = unit.to_be_bytes();
            text.push_str("\\u");
            push_byte(&mut text, high, digits);
            push_byte(&mut text, low, digits);
        }
    }
    text
}

fn percent(text: &str, kept: &str, digits: &[u8; 16]) -> String {
    percent_where(text, digits, |byte| !byte.is_ascii_alphanumeric() && !kept.as_bytes().contains(&byte))
}

fn percent_all(text: &str, digits: &[u8; 16]) -> String {
    percent_where(text, digits, |_| true)
}

fn percent_where(text: &str, digits: &[u8; 16], escaped: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if escaped(byte) {
            encoded.push('%');
            push_byte(&mut encoded, byte, digits);
        } else {
            encoded.push(char::from(byte));
        }
    }
    encoded
}

fn push_byte(text: &mut String, byte: u8, digits: &[u8; 16]) {
    text.push(char::from(digits[usize::from(byte >> 4)]));
    text.push(char::from(digits[usize::from(byte & 15)]));
}

fn backslashes(text: &str, escaped: impl Fn(char) -> bool) -> String {
    let mut escaping = String::with_capacity(text.len());
    for letter in text.chars() {
        if escaped(letter) {
            escaping.push('\\');
        }
        escaping.push(letter);
    }
    escaping
}

fn html(text: &str, quote: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', quote)
}

/// Encodes a value in Base64 as if `offset` bytes preceded it. Omits the digits that contain bits of neighbouring bytes.
fn base64(value: &str, offset: usize, alphabet: &[u8; 64]) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, offset).chain(value.bytes()).collect();
    let sextet = |place: usize| {
        let bit = place * 6;
        let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or_default());
        let pair = (byte(bit / 8) << 8) | byte(bit / 8 + 1);
        char::from(alphabet[usize::from((pair >> (10 - bit % 8)) & 63)])
    };
    ((offset * 8).div_ceil(6)..bytes.len() * 8 / 6).map(sextet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, text: &str) -> String {
        let spelling = SPELLINGS.iter().find(|spelling| spelling.name == name).expect("a spelling");
        (spelling.write)(text)
    }

    #[test]
    fn values_are_written_as_others_write_them() {
        let value = "a/b \"ü'<$>+😀";
        for (name, wanted) in [
            ("json", "a/b \\\"ü'<$>+😀"),
            ("json-json", "a/b \\\\\\\"ü'<$>+😀"),
            ("json-slash", "a\\/b \\\"ü'<$>+😀"),
            ("json-ascii", "a/b \\\"\\u00fc'<$>+\\ud83d\\ude00"),
            ("json-html-upper", "a/b \\\"\\u00FC\\u0027\\u003C$\\u003E\\u002B\\uD83D\\uDE00"),
            ("percent", "a%2fb%20%22%c3%bc%27%3c%24%3e%2b%f0%9f%98%80"),
            ("percent-component-upper", "a%2Fb%20%22%C3%BC'%3C%24%3E%2B%F0%9F%98%80"),
            ("percent-path-upper", "a/b%20%22%C3%BC%27%3C%24%3E%2B%F0%9F%98%80"),
            ("form-upper", "a%2Fb+%22%C3%BC%27%3C%24%3E%2B%F0%9F%98%80"),
            ("shell", "a/b \"ü'\\''<$>+😀"),
            ("shell-bare", "a/b\\ \\\"ü\\'\\<\\$\\>+😀"),
            ("shell-double", "a/b \\\"ü'<\\$>+😀"),
            ("html-decimal", "a/b &quot;ü&#39;&lt;$&gt;+😀"),
        ] {
            assert_eq!(written(name, value), wanted, "{name}");
        }
    }

    #[test]
    fn base64_has_no_letter_of_its_neighbours() {
        assert_eq!(written("base64", "hunter22?>"), "aHVudGVyMjI/P");
        assert_eq!(written("base64url", "hunter22?>"), "aHVudGVyMjI_P");
        // "u:hunter22?>!" and "me:hunter22?>!" in full.
        assert!("dTpodW50ZXIyMj8+IQ==".contains(&written("base64-2", "hunter22?>")));
        assert!("bWU6aHVudGVyMjI/PiE=".contains(&written("base64", "hunter22?>")));
        assert!("YWRhOmh1bnRlcjIyPz4h".contains(&written("base64-1", "hunter22?>")));
    }

    #[test]
    fn names_are_different() {
        let names: std::collections::BTreeSet<_> = SPELLINGS.iter().map(|spelling| spelling.name).collect();
        assert_eq!(names.len(), SPELLINGS.len());
    }
}
