//! Parses token counts and costs leniently. An invalid number counts as absent or 0 and does not make the whole response invalid.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Numbers that are not valid JSON but that some servers send. `-Infinity` comes before `Infinity`, which it contains.
const NOT_JSON: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// A token count. Negative or invalid counts become 0, and too large ones `u64::MAX`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl<'de> Deserialize<'de> for Count {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the nearest count is meant, and 0 for what is not a number"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = plain(<&RawValue>::deserialize(deserializer)?);
        let exact = written.parse().ok();
        // Counts above 2^53 are exact only if they are parsed as integers.
        Ok(Self(exact.unwrap_or_else(|| written.parse::<f64>().map_or(0, |number| number as u64))))
    }
}

/// The details of input tokens in both OpenAI APIs.
#[derive(Default, Deserialize)]
pub(crate) struct InputDetails {
    #[serde(default)]
    pub(crate) cached_tokens: Count,
}

/// Deserialises a cost. Returns `None` if it is negative or not a finite number.
pub(crate) fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let cost = plain(<&RawValue>::deserialize(deserializer)?).parse().ok();
    Ok(cost.filter(|cost: &f64| cost.is_finite() && *cost >= 0.0))
}

/// Deserialises a value. Returns `None` if it has another type.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let written = <&RawValue>::deserialize(deserializer)?.get();
    // Most chunks contain `null`, and creating the parse error takes longer than parsing the rest of the chunk.
    if written == "null" {
        return Ok(None);
    }
    Ok(serde_json::from_str(written).ok())
}

/// Returns the text of a number, without quotes around it.
fn plain(value: &RawValue) -> &str {
    value.get().trim_matches('"').trim()
}

/// Replaces numbers that are not valid JSON with `null`. Returns `None` if there are none.
pub(crate) fn mended(body: &[u8]) -> Option<Vec<u8>> {
    let (mut mended, mut copied, mut place, mut quoted) = (Vec::new(), 0, 0, false);
    while let Some(byte) = body.get(place) {
        let word = NOT_JSON.iter().find(|word| !quoted && body[place..].starts_with(word));
        if let Some(word) = word {
            mended.extend_from_slice(&body[copied..place]);
            mended.extend_from_slice(b"null");
            place += word.len();
            copied = place;
            continue;
        }
        match byte {
            b'"' => quoted = !quoted,
            // An escaped quote does not end a string.
            b'\\' if quoted => place += 1,
            _ => {}
        }
        place += 1;
    }
    mended.extend_from_slice(&body[copied..]);
    (copied > 0).then_some(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_json_become_null_outside_of_texts_only() {
        let mend = |text: &str| mended(text.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("text"));
        assert_eq!(mend(r#"{"a": NaN, "b": [-Infinity,Infinity]}"#).as_deref(), Some(r#"{"a": null, "b": [null,null]}"#));
        assert_eq!(mend(r#"{"a": "NaN \" Infinity", "b": -1}"#), None);
        assert_eq!(mend(r#"{"a": "\\", "b": NaN}"#).as_deref(), Some(r#"{"a": "\\", "b": null}"#));
        assert_eq!((mend(""), mend("\"\\"), mend("Na")), (None, None, None));
    }
}
