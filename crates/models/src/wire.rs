//! What a provider's wire is: pure functions from a request to bytes, and from bytes to the pieces of an answer.

use std::fmt;
use std::marker::PhantomData;

use helve_core::{Deltas, ModelError, ModelRequest, untrusted};
use helve_fetch::HeaderMap;
use secrecy::SecretString;
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

use crate::number::mended;

/// How one kind of provider is spoken to. Nothing here does input or output.
pub trait Wire: Send + Sync + 'static {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Where requests go, after the provider's base address.
    fn path(&self, model: &str, stream: bool) -> String;

    /// The headers that carry the key, and what else the provider wants.
    fn headers(&self, key: Option<&SecretString>, into: &mut HeaderMap);

    /// The body of a request.
    fn to_wire(&self, model: &str, request: &ModelRequest) -> Vec<u8>;

    /// Reads an answer that came whole.
    ///
    /// # Errors
    /// Where it is none, or says that something went wrong.
    #[expect(clippy::wrong_self_convention, reason = "the counterpart of `to_wire`")]
    fn from_wire(&self, body: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// Reads an answer that comes in events.
    fn events(&self) -> Box<dyn EventReader>;
}

/// Reads one answer that comes in server-sent events.
pub trait EventReader: Send {
    /// Takes one event.
    ///
    /// # Errors
    /// Where it makes no sense, or says that something went wrong.
    fn event(&mut self, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError>;

    /// Whether the provider said that the answer is over. It need not say so.
    fn is_over(&self) -> bool {
        false
    }

    /// Nothing more comes: says why the answer ended.
    ///
    /// # Errors
    /// Where it was cut off.
    fn finish(&mut self, into: &mut Deltas) -> Result<(), ModelError>;
}

/// Reads an answer that came whole, also of those who write what is no JSON.
pub(crate) fn read_whole(wire: &dyn Wire, body: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    let read = wire.from_wire(body, into);
    if matches!(read, Err(ModelError::Protocol(_)))
        && let Some(body) = mended(body)
    {
        return wire.from_wire(&body, into);
    }
    read
}

/// The same for an event. What cannot be parsed has told nothing yet, so that nothing is told twice.
pub(crate) fn read_event(reader: &mut dyn EventReader, name: &str, data: &[u8], into: &mut Deltas) -> Result<(), ModelError> {
    let read = reader.event(name, data, into);
    if matches!(read, Err(ModelError::Protocol(_)))
        && let Some(data) = mended(data)
    {
        return reader.event(name, &data, into);
    }
    read
}

/// An answer has at most so many parts under way at once, and a list in it so many members.
pub(crate) const MAX_PARTS: usize = 4096;

/// Reads a list that may be left out. A few bytes of each member could take a hundred of memory, so that it is not read beyond
/// what anyone could mean.
pub(crate) fn parts<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Vec<T>>, D::Error> {
    struct List<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Option<Vec<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::new();
            while let Some(member) = members.next_element()? {
                if list.len() == MAX_PARTS {
                    return Err(A::Error::custom(format_args!("a list has more than {MAX_PARTS} parts")));
                }
                list.push(member);
            }
            Ok(Some(list))
        }
    }
    deserializer.deserialize_any(List(PhantomData))
}

/// An answer in more parts than anyone could mean.
pub(crate) fn too_many_parts() -> ModelError {
    ModelError::Protocol(format!("the answer has more than {MAX_PARTS} parts"))
}

/// An answer that ended before it was over.
pub(crate) fn broken_off() -> ModelError {
    ModelError::Network("the connection ended before the answer was complete".into())
}

/// Something that is not what the provider promises, with its beginning.
pub(crate) fn nonsense(what: &str, error: &dyn fmt::Display, data: &[u8]) -> ModelError {
    let shown = helve_core::printable::shorten_words(
        &helve_core::printable::escape_line(&String::from_utf8_lossy(&data[..data.len().min(4000)])),
        160,
    );
    ModelError::Protocol(format!("{what} cannot be read ({error}): {shown}"))
}

/// Appends a text as a JSON string. Results and arguments are long and need few escapes, so that eight bytes are looked at at
/// once.
pub(crate) fn string(into: &mut Vec<u8>, text: &str) {
    into.push(b'"');
    inside_string::<false>(into, text);
    into.push(b'"');
}

/// What came of a call as a JSON string, marked as text from outside.
pub(crate) fn result(into: &mut Vec<u8>, text: &str) {
    into.push(b'"');
    into.extend_from_slice(untrusted::OPEN.as_bytes());
    inside_string::<true>(into, text);
    into.extend_from_slice(untrusted::CLOSE.as_bytes());
    into.push(b'"');
}

/// The inside of a JSON string, if asked for without marks of text from outside.
fn inside_string<const UNMARKED: bool>(into: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    into.reserve(bytes.len() + bytes.len() / 32 + 32);
    let mut plain = 0;
    let mut place = 0;
    while let Some(found) = next_special::<UNMARKED>(bytes, place) {
        into.extend_from_slice(&bytes[plain..found]);
        match bytes[found] {
            b'<' if untrusted::is_mark(&text[found..]) => into.extend_from_slice(untrusted::INERT.as_bytes()),
            b'<' => into.push(b'<'),
            byte => escape(into, byte),
        }
        (plain, place) = (found + 1, found + 1);
    }
    into.extend_from_slice(&bytes[plain..]);
}

/// The next byte that cannot stand in a JSON string as it is; with marks, also the next `<`.
fn next_special<const MARKS: bool>(bytes: &[u8], mut place: usize) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let zero_in = |word: u64| word.wrapping_sub(ONES) & !word;
    while let Some(chunk) = bytes.get(place..place + 8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let mark = if MARKS { zero_in(word ^ (ONES * u64::from(b'<'))) } else { 0 };
        let special = (control | mark | zero_in(word ^ (ONES * u64::from(b'"'))) | zero_in(word ^ (ONES * u64::from(b'\\')))) & HIGH;
        if special != 0 {
            // A borrow may mark a byte too many, but never the first.
            return Some(place + special.trailing_zeros() as usize / 8);
        }
        place += 8;
    }
    let rest = bytes.get(place..)?;
    rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\') || (MARKS && *byte == b'<')).map(|found| place + found)
}

fn escape(into: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        other => {
            into.extend_from_slice(format!("\\u{other:04x}").as_bytes());
            return;
        }
    };
    into.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_written_so_that_it_is_read_back(text in "([a-z\\x00-\\x20\"\\\\é😀]{0,40}|.{0,80})") {
            let mut into = Vec::new();
            string(&mut into, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&into).expect("JSON"), text);
        }

        #[test]
        fn any_result_is_written_between_its_marks(text in "([a-c<>/\n\"\\\\é]|</?untrusted>|< / UNTRUSTED>){0,40}") {
            let mut into = Vec::new();
            result(&mut into, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&into).expect("JSON"), untrusted::mark(&text));
        }
    }
}
