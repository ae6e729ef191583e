//! Deserialises strings leniently: some servers send a number, a list of parts, or an object instead.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A string, borrowed from the response if it contains no escapes.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        macro_rules! numbers {
            ($($visit:ident: $number:ty),*) => {$(
                fn $visit<E>(self, number: $number) -> Result<Text<'de>, E> {
                    Ok(Text(Cow::Owned(number.to_string())))
                }
            )*};
        }
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            numbers!(visit_u64: u64, visit_i64: i64, visit_f64: f64);

            fn visit_bool<E>(self, _: bool) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed("")))
            }

            fn visit_unit<E>(self) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed("")))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text<'de>, A::Error> {
                let mut whole = String::new();
                while let Some(part) = parts.next_element::<Value>()? {
                    whole.push_str(part.get("text").unwrap_or(&part).as_str().unwrap_or_default());
                }
                Ok(Text(Cow::Owned(whole)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text<'de>, A::Error> {
                let value = Value::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Text(Cow::Owned(value.to_string())))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
