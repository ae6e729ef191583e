//! Deserialises lists. A list may be `null`, and its length is limited, so that a provider cannot exhaust the memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

/// Maximum number of items in a list, and of parts of a response that are in progress at the same time.
pub(crate) const MAX_PARTS: usize = 4096;

/// A type that can be deserialised from a list.
pub(crate) trait FromList<'de>: Sized {
    fn read<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error>;
}

/// Reads all items. Their number is limited, because an item of a few bytes can take a hundred bytes of memory.
impl<'de, T: Deserialize<'de>> FromList<'de> for Vec<T> {
    fn read<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut members = Self::new();
        while let Some(member) = list.next_element()? {
            if members.len() == MAX_PARTS {
                return Err(A::Error::custom(format_args!("a list has more than {MAX_PARTS} parts")));
            }
            members.push(member);
        }
        Ok(members)
    }
}

/// The first item of a list. The others are skipped.
pub(crate) struct First<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> FromList<'de> for First<T> {
    fn read<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let first = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self(first))
    }
}

/// Deserialises a list. Returns `None` for `null`.
pub(crate) fn list<'de, D: Deserializer<'de>, L: FromList<'de>>(deserializer: D) -> Result<Option<L>, D::Error> {
    struct ListVisitor<L>(PhantomData<L>);
    impl<'de, L: FromList<'de>> Visitor<'de> for ListVisitor<L> {
        type Value = Option<L>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            L::read(list).map(Some)
        }
    }
    deserializer.deserialize_any(ListVisitor(PhantomData))
}
