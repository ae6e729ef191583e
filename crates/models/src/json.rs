//! Writes JSON directly into a byte buffer. Conversations are long, so no intermediate `Value` is built for them.

use helve_core::untrusted;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;

/// Methods that append JSON to a buffer.
pub(crate) trait WriteJson {
    /// Appends JSON text unchanged.
    fn raw(&mut self, json: &str);

    /// Appends the JSON text `before` unchanged, then `text` as a JSON string.
    fn string(&mut self, before: &str, text: &str);

    /// Like [`string`](Self::string), but marks the text as untrusted. Used for the results of calls.
    fn untrusted(&mut self, before: &str, text: &str);

    /// Appends a value, serialised as JSON.
    fn value(&mut self, value: &(impl Serialize + ?Sized));

    /// Appends a comma, except before the first item of a list.
    fn comma(&mut self);

    /// Appends the arguments of a call as a JSON object. Arguments that are not an object are wrapped in one, because the provider would
    /// reject a request with invalid JSON.
    fn arguments(&mut self, text: &str);
}

impl WriteJson for Vec<u8> {
    fn raw(&mut self, json: &str) {
        self.extend_from_slice(json.as_bytes());
    }

    fn string(&mut self, before: &str, text: &str) {
        self.raw(before);
        self.push(b'"');
        inside_string::<false>(self, text);
        self.push(b'"');
    }

    fn untrusted(&mut self, before: &str, text: &str) {
        self.raw(before);
        self.push(b'"');
        self.raw(untrusted::OPEN);
        inside_string::<true>(self, text);
        self.raw(untrusted::CLOSE);
        self.push(b'"');
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) {
        // Serialising plain values into memory cannot fail.
        let _ = serde_json::to_writer(self, value);
    }

    fn comma(&mut self) {
        // Messages are serialised into a separate, empty buffer before they are added to a list.
        if !matches!(self.last(), None | Some(b'[' | b',')) {
            self.push(b',');
        }
    }

    fn arguments(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            self.raw("{}");
        } else if text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            self.raw(text);
        } else {
            self.value(&json!({"arguments": text}));
        }
    }
}

/// Appends the content of a JSON string. If `MARKS`, also escapes `<untrusted>` tags in the text. Results and arguments are long and
/// need few escapes, so eight bytes are checked at once.
fn inside_string<const MARKS: bool>(into: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    into.reserve(bytes.len() + bytes.len() / 32 + 32);
    let mut written = 0;
    while let Some(found) = next_special::<MARKS>(bytes, written) {
        into.extend_from_slice(&bytes[written..found]);
        match bytes[found] {
            b'<' if untrusted::is_mark(&text[found..]) => into.raw(untrusted::INERT),
            b'<' => into.push(b'<'),
            byte => escape(into, byte),
        }
        written = found + 1;
    }
    into.extend_from_slice(&bytes[written..]);
}

/// Returns the index of the next byte that a JSON string must escape, or, if `MARKS`, of the next `<`.
fn next_special<const MARKS: bool>(bytes: &[u8], mut start: usize) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let zero_in = |word: u64| word.wrapping_sub(ONES) & !word;
    while let Some(chunk) = bytes.get(start..start + 8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let mark = if MARKS { zero_in(word ^ (ONES * u64::from(b'<'))) } else { 0 };
        let special = (control | mark | zero_in(word ^ (ONES * u64::from(b'"'))) | zero_in(word ^ (ONES * u64::from(b'\\')))) & HIGH;
        if special != 0 {
            // The subtraction can carry into higher bytes and report them wrongly, but never the first reported byte.
            return Some(start + special.trailing_zeros() as usize / 8);
        }
        start += 8;
    }
    let rest = bytes.get(start..)?;
    rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\') || (MARKS && *byte == b'<')).map(|found| start + found)
}

fn escape(into: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        other => return into.raw(&format!("\\u{other:04x}")),
    };
    into.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_are_always_an_object() {
        let written = |text: &str| {
            let mut bytes = Vec::new();
            bytes.arguments(text);
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!(written(" {\"a\": 1} "), "{\"a\": 1}");
        assert_eq!(written(""), "{}");
        assert_eq!(written("{\"a\": "), r#"{"arguments":"{\"a\":"}"#);
        assert_eq!(written("[1]"), r#"{"arguments":"[1]"}"#);
    }

    proptest! {
        #[test]
        fn any_text_is_written_so_that_it_is_read_back(text in "([a-z\\x00-\\x20\"\\\\é😀]{0,40}|.{0,80})") {
            let mut into = Vec::new();
            into.string("", &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&into).expect("JSON"), text);
        }

        #[test]
        fn any_result_is_written_between_its_marks(text in "([a-c<>/\n\"\\\\é]|</?untrusted>|< / UNTRUSTED>){0,40}") {
            let mut into = Vec::new();
            into.untrusted("", &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&into).expect("JSON"), untrusted::mark(&text));
        }
    }
}
