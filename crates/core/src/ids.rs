//! Identifiers that Helve mints: unique, ordered by time, and cheap to copy.
//!
//! An id is 128 bits (48 of milliseconds, 80 of chance) and is written with a prefix that says what it names,
//! `call_01JCQ…`. Models repeat their own ids, so those never identify anything here.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 26;

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no id of this kind; one looks like `{prefix}_` and {LENGTH} letters and digits")]
pub struct IdError {
    text: String,
    prefix: &'static str,
}

fn mint(random: u128) -> u128 {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
    (millis << 80) | (random >> 48)
}

fn write_digits(value: u128) -> [u8; LENGTH] {
    let mut digits = [b'0'; LENGTH];
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        *digit = DIGITS[(value >> (place * 5)) as usize & 31];
    }
    digits
}

fn read_digits(text: &str) -> Option<u128> {
    if text.len() != LENGTH || !matches!(text.as_bytes()[0], b'0'..=b'7') {
        return None;
    }
    text.bytes().try_fold(0u128, |value, byte| {
        let digit = DIGITS.iter().position(|known| *known == byte)?;
        Some((value << 5) | digit as u128)
    })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// Mints an id that no one else has.
            #[must_use]
            pub fn mint() -> Self {
                Self(mint(fastrand::u128(..)))
            }

            /// A new id with chance from elsewhere, for those that nobody may guess.
            #[must_use]
            pub fn mint_from(random: u128) -> Self {
                Self(mint(random))
            }

            /// One of 256 numbers: the same for an id at any time, and by chance for any two.
            #[must_use]
            pub fn lot(self) -> u8 {
                self.0.to_le_bytes()[0]
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let digits = write_digits(self.0);
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(read_digits)
                    .map(Self)
                    .ok_or_else(|| IdError { text: text.chars().take(64).collect(), prefix: $prefix })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// One call of a tool. The task of a background call has the same id.
    CallId, "call"
);
id!(
    /// One run of an agent.
    RunId, "run"
);
id!(
    /// Runs in order, with what a person granted.
    ConversationId, "conv"
);
id!(
    /// One request to a person about a call.
    ApprovalId, "appr"
);

id!(
    /// A process that holds tasks and runs.
    HolderId, "proc"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_refuse_other_kinds() {
        let id = CallId::mint();
        assert_eq!(id.to_string().parse::<CallId>(), Ok(id));
        assert!(id.to_string().parse::<RunId>().is_err());
        for wrong in ["", "call_", "call_0", "call_8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "call_01JCQé00000000000000000000"] {
            assert!(wrong.parse::<CallId>().is_err(), "{wrong}");
        }
        assert_eq!(serde_json::from_value::<CallId>(serde_json::json!(id)).ok(), Some(id));
    }

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let early = CallId::mint();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let late = CallId::mint();
        assert!(early < late && early.to_string() < late.to_string());
    }
}
