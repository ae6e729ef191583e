//! OAuth scopes, and the choice of the scopes to request.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The scope that requests a refresh token.
const OFFLINE: &str = "offline_access";
/// Maximum number of scopes in a set; further scopes are ignored.
const MOST: usize = 100;
const LONGEST: usize = 256;

/// A set of OAuth scopes, in their original order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Parses scopes separated by spaces. Ignores invalid ones.
    #[must_use]
    pub fn read(text: &str) -> Self {
        text.split(' ').collect()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `others` contains all scopes of this set.
    #[must_use]
    pub fn are_in(&self, others: &Self) -> bool {
        self.0.iter().all(|scope| others.0.contains(scope))
    }

    /// Returns the union with `others`.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        self.iter().chain(others.iter()).collect()
    }

    /// Returns an iterator over the scopes.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the scopes in a metadata field such as `scopes_supported`.
    pub(super) fn listed(field: Option<&Value>) -> Self {
        field.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(super) fn offline(&self) -> bool {
        self.iter().any(|scope| scope == OFFLINE)
    }

    /// Returns the scopes to request: the configured ones, or else those of the challenge, or else those in the server's metadata. Adds the
    /// scopes of the challenge and those requested before.
    pub(super) fn choose(wish: &ScopeSources<'_>) -> Self {
        let base = if wish.configured.is_empty() { wish.challenged } else { wish.configured };
        let base = if base.is_empty() { wish.listed } else { base };
        let all = base.and(wish.challenged).and(wish.before);
        // Some issuers reject unknown scopes, so this requests `offline_access` only if the issuer lists it, and never alone.
        let mut chosen: Self = all.iter().filter(|scope| *scope != OFFLINE).collect();
        if !chosen.is_empty() && wish.issuer.offline() {
            chosen.0.push(OFFLINE.to_owned());
        }
        chosen
    }
}

/// The scopes from which [`Scopes::choose`] chooses.
pub(super) struct ScopeSources<'a> {
    /// The configured scopes.
    pub(super) configured: &'a Scopes,
    /// The scopes of the server's challenge.
    pub(super) challenged: &'a Scopes,
    /// The scopes in the server's metadata.
    pub(super) listed: &'a Scopes,
    /// The scopes of the previous login at the same issuer.
    pub(super) before: &'a Scopes,
    /// The scopes in the issuer's metadata.
    pub(super) issuer: &'a Scopes,
}

impl<'a> FromIterator<&'a str> for Scopes {
    fn from_iter<T: IntoIterator<Item = &'a str>>(scopes: T) -> Self {
        let mut set = Vec::new();
        for scope in scopes.into_iter().filter(|scope| is_scope(scope)) {
            if set.len() < MOST && !set.iter().any(|known| known == scope) {
                set.push(scope.to_owned());
            }
        }
        Self(set)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

fn is_scope(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(configured: &str, challenged: &str, listed: &str, before: &str, issuer: &str) -> String {
        let read = |text| Scopes::read(text);
        let [configured, challenged, listed, before, issuer] = [configured, challenged, listed, before, issuer].map(read);
        let wish = ScopeSources { configured: &configured, challenged: &challenged, listed: &listed, before: &before, issuer: &issuer };
        Scopes::choose(&wish).to_string()
    }

    #[test]
    fn the_challenge_comes_before_the_list() {
        assert_eq!(choose("", "a", "b c", "", ""), "a");
        assert_eq!(choose("", "", "b c", "", ""), "b c");
        assert_eq!(choose("", "", "", "", ""), "");
        assert_eq!(choose("mine", "a", "b", "", ""), "mine a");
        assert_eq!(choose("mine", "", "b", "", ""), "mine");
    }

    #[test]
    fn what_was_asked_before_stays() {
        assert_eq!(choose("", "write", "profile", "read write", ""), "write read");
    }

    #[test]
    fn offline_access_is_for_those_who_offer_it() {
        assert_eq!(choose("", "a offline_access", "", "", "a"), "a");
        assert_eq!(choose("", "a", "", "", "a offline_access"), "a offline_access");
        assert_eq!(choose("", "", "", "", "offline_access"), "");
    }

    #[test]
    fn what_is_no_scope_is_dropped() {
        assert_eq!(Scopes::read("a  b\"c d\\e f\n a é g").to_string(), "a g");
        assert_eq!(Scopes::read(&"x".repeat(300)).to_string(), "");
        let many = (0..1000).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(Scopes::read(&many).iter().count(), MOST);
    }
}
