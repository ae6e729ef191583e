//! Ids that Helve generates: unique, sortable by time, and cheap to copy.
//!
//! An id has 128 bits (48 bits of milliseconds, 80 random bits) and is written with a prefix for its kind, such as `call_01JCQ…`. Helve
//! never identifies a call by the model's own id, because models reuse their ids.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 26;

/// The error for a string that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid id: expected `{prefix}_` followed by {LENGTH} letters and digits")]
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

/// Implements `Debug` and serde for a type through its `Display` and `FromStr`.
macro_rules! text_form {
    ($name:ident) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use text_form;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// Generates a unique id.
            #[must_use]
            pub fn mint() -> Self {
                Self(mint(fastrand::u128(..)))
            }

            /// Generates an id with the given random bits, for ids that must be unguessable.
            #[must_use]
            pub fn mint_from(random: u128) -> Self {
                Self(mint(random))
            }

            /// Returns a number from the random bits of the id, for jitter.
            #[must_use]
            pub fn jitter(self) -> u8 {
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

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(read_digits)
                    .map(Self)
                    .ok_or_else(|| IdError { text: text.chars().take(64).collect(), prefix: $prefix })
            }
        }

        text_form!($name);
    };
}

id!(
    /// Id of a tool call, and of its task if it runs in the background.
    CallId, "call"
);
id!(
    /// Id of an agent's run.
    RunId, "run"
);
id!(
    /// Id of a conversation.
    ConversationId, "conv"
);
id!(
    /// Id of an approval request.
    ApprovalId, "appr"
);
id!(
    /// Id of a process that claims tasks and runs; its leases belong to this id.
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
