//! What an answer says of its cost. Nobody loses an answer over it: where it makes no sense, it counts as not said.

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What JSON has no word for, and what some write all the same. The longer one comes first.
const NO_JSON: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// How many: less than nothing is nothing, and too many are as many as can be counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl<'de> Deserialize<'de> for Count {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the nearest count is meant, and none for no number")]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = plain(<&RawValue>::deserialize(deserializer)?);
        let exact = written.parse().ok();
        // Counts above 2^53 are exact only where they are read as whole numbers.
        Ok(Self(exact.unwrap_or_else(|| written.parse::<f64>().map_or(0, |number| number as u64))))
    }
}

/// Money: a number that can be added to others, or nothing.
pub(crate) fn money<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let cost = plain(<&RawValue>::deserialize(deserializer)?).parse().ok();
    Ok(cost.filter(|cost: &f64| cost.is_finite() && *cost >= 0.0))
}

/// Something that is worth knowing; nothing where it has another form.
pub(crate) fn perhaps<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let written = <&RawValue>::deserialize(deserializer)?.get();
    // Most pieces of an answer say so, and to explain each time that it is no object costs more than to read the rest.
    if written == "null" {
        return Ok(None);
    }
    Ok(serde_json::from_str(written).ok())
}

/// A number as it is written, also where it stands in quotes.
fn plain(value: &RawValue) -> &str {
    value.get().trim_matches('"').trim()
}

/// The same answer with `null` in the place of what JSON has no word for; nothing where no such word stands in it.
pub(crate) fn mended(answer: &[u8]) -> Option<Vec<u8>> {
    let (mut mended, mut taken, mut place, mut quoted) = (Vec::new(), 0, 0, false);
    while let Some(byte) = answer.get(place) {
        let word = NO_JSON.iter().find(|word| !quoted && answer[place..].starts_with(word));
        if let Some(word) = word {
            mended.extend_from_slice(&answer[taken..place]);
            mended.extend_from_slice(b"null");
            place += word.len();
            taken = place;
            continue;
        }
        match byte {
            b'"' => quoted = !quoted,
            // What is escaped ends no text.
            b'\\' if quoted => place += 1,
            _ => {}
        }
        place += 1;
    }
    mended.extend_from_slice(&answer[taken..]);
    (taken > 0).then_some(mended)
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
