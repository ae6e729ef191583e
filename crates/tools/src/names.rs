//! Maps tool names to names that all models accept.
//!
//! Providers allow `^[a-zA-Z0-9_-]{1,64}$`. The model name of a tool depends only on the name of the tool, so it stays the same while other
//! sources are added and removed. Three disjoint forms make the mapping reversible:
//!
//! | a name that | becomes | example |
//! |---|---|---|
//! | is allowed, and has no `--` and no mark | itself | `get_time` |
//! | would be allowed without its single dots between parts | the name with `--` for each dot | `self.light.on` → `self--light--on` |
//! | is anything else | its allowed characters, and a mark: `_x` and 13 characters of its hash | `天气/now` → `now_x…` |

use std::borrow::Cow;

use helve_core::Digest;

/// Maximum length, in bytes, of a name that every provider accepts.
pub const MAX_MODEL_NAME: usize = 64;

const MARK: &str = "_x";
/// Number of characters of the hash, which have 65 bits. Names do not collide by chance; if they do, the catalogue offers only one.
const HASH_LENGTH: usize = 13;
const HASH_DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Returns the name of a tool for models.
#[must_use]
pub fn model_name(name: &str) -> Cow<'_, str> {
    let allowed = !name.is_empty() && name.len() <= MAX_MODEL_NAME && !is_marked(name) && !name.contains("--");
    if allowed && name.bytes().all(is_legible) {
        return Cow::Borrowed(name);
    }
    if allowed && has_only_inner_dots(name) {
        let dotless = name.replace('.', "--");
        if dotless.len() <= MAX_MODEL_NAME && !is_marked(&dotless) {
            return Cow::Owned(dotless);
        }
    }
    Cow::Owned(marked(name))
}

fn is_legible(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns whether every part between dots is legible and neither starts nor ends with `-`, which would make `--` ambiguous.
fn has_only_inner_dots(name: &str) -> bool {
    name.split('.').all(|part| !part.is_empty() && part.bytes().all(is_legible) && !part.starts_with('-') && !part.ends_with('-'))
}

/// Returns whether a name has the suffix that [`marked`] appends.
fn is_marked(name: &str) -> bool {
    let Some(start) = name.len().checked_sub(MARK.len() + HASH_LENGTH) else { return false };
    name.get(start..).and_then(|end| end.strip_prefix(MARK)).is_some_and(|hash| hash.bytes().all(|byte| HASH_DIGITS.contains(&byte)))
}

fn marked(name: &str) -> String {
    let digest = Digest::of([name.as_bytes()]);
    let bits = digest.as_bytes().iter().take(16).fold(0u128, |bits, byte| (bits << 8) | u128::from(*byte));
    let hash = (0..HASH_LENGTH).map(|place| HASH_DIGITS[(bits >> (place * 5)) as usize & 31] as char);
    let mut legible: String = name.chars().map(|character| if is_legible_char(character) { character } else { '_' }).collect();
    legible.truncate(MAX_MODEL_NAME - MARK.len() - HASH_LENGTH);
    let stem = legible.trim_matches('_');
    if stem.is_empty() { "tool" } else { stem }.chars().chain(MARK.chars()).chain(hash).collect()
}

fn is_legible_char(character: char) -> bool {
    u8::try_from(character).is_ok_and(is_legible)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay_dots_become_dashes_and_the_rest_is_marked() {
        assert_eq!(model_name("get_time"), "get_time");
        assert_eq!(model_name("self.light.set-rgb"), "self--light--set-rgb");
        assert_eq!(model_name(&"x".repeat(64)), "x".repeat(64));
        for name in ["", "a b", "天气", "a--b", "a..b", ".a", "a-.b", "files/read", &"x".repeat(65), &("a.".repeat(31) + "bc")] {
            let marked = model_name(name);
            assert!(is_marked(&marked) && marked.len() <= MAX_MODEL_NAME, "{name} became {marked}");
        }
        assert!(model_name("天气/now").starts_with("now_x"), "{}", model_name("天气/now"));
    }

    #[test]
    fn a_name_that_looks_marked_cannot_pass_for_another() {
        let victim = model_name("pay/now").into_owned();
        assert_ne!(model_name(&victim), victim, "or a stranger could take the place of `pay/now`");
    }

    proptest! {
        /// Names in, distinct names out, in every form; and the same name each time.
        #[test]
        fn the_mapping_is_a_bijection(names in prop::collection::hash_set("[a-zA-Z0-9_.-]{0,12}|_x[a-c]{13}|[ab]_x[a-b]{13}|\\PC{0,20}|[a.-]{60,70}", 0..60)) {
            let mut back = HashMap::new();
            for name in &names {
                let mapped = model_name(name).into_owned();
                prop_assert!((1..=MAX_MODEL_NAME).contains(&mapped.len()) && mapped.bytes().all(is_legible), "{} became {}", name, mapped);
                prop_assert_eq!(model_name(name), mapped.as_str());
                if let Some(other) = back.insert(mapped.clone(), name) {
                    prop_assert!(false, "{} and {} both became {}", name, other, mapped);
                }
            }
        }
    }
}
