//! The known secrets of a process, and the search for them in text.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use secrecy::{ExposeSecret, SecretString};

use super::spelling::sought;
use super::view::Views;

/// The known secrets of a process, with finders for them.
#[derive(Default)]
pub(super) struct KnownSecrets {
    pub(super) secrets: Vec<Secret>,
    finders: Vec<Finder>,
    /// Whether a secret contains a space, which HTML forms encode as `+`.
    spaces: bool,
    /// Whether secrets were added that the finders do not know yet.
    pub(super) is_stale: bool,
    /// Placeholders whose secret is not known, as they were read from the store.
    pub(super) unfilled: BTreeSet<String>,
}

/// A secret, and the names of its sources.
pub(super) struct Secret {
    pub(super) value: SecretString,
    pub(super) sources: Vec<Arc<str>>,
}

struct Finder {
    automaton: AhoCorasick,
    /// For each pattern, the index of its secret.
    owners: Vec<usize>,
}

/// The byte range of a secret in a text, in any encoding, and the index of the secret.
pub(super) struct SecretMatch {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) secret: usize,
}

impl KnownSecrets {
    pub(super) fn add(&mut self, source: &Arc<str>, value: SecretString) {
        let old = self.secrets.iter().position(|known| known.value.expose_secret() == value.expose_secret());
        let place = old.unwrap_or(self.secrets.len());
        if old.is_none() {
            self.spaces |= value.expose_secret().contains(' ');
            self.is_stale = true;
            self.secrets.push(Secret { value, sources: Vec::new() });
        }
        if let Some(known) = self.secrets.get_mut(place)
            && !source.is_empty()
            && !known.sources.contains(source)
        {
            known.sources.push(source.clone());
        }
    }

    /// Returns the patterns to search for, each with the index of its secret.
    pub(super) fn sought(&self) -> impl Iterator<Item = (String, usize)> {
        let of = |(place, secret): (usize, &Secret)| sought(secret.value.expose_secret()).into_iter().map(move |text| (text, place));
        self.secrets.iter().enumerate().flat_map(of)
    }

    pub(super) fn refresh(&mut self) {
        self.finders = finders(self.sought().collect());
        self.is_stale = false;
    }

    pub(super) fn views<'a>(&self, text: &'a str) -> Views<'a> {
        Views::of(text, self.spaces)
    }

    /// Returns the secrets in a text, in order. Overlapping matches are merged.
    pub(super) fn find(&self, text: &str) -> Vec<SecretMatch> {
        if self.finders.is_empty() {
            return Vec::new();
        }
        let (views, mut found) = (self.views(text), Vec::new());
        for (bytes, _, view) in views.each() {
            for finder in &self.finders {
                found.extend(finder.automaton.find_iter(bytes).filter_map(|hit| {
                    let (start, end) = views.place(view, hit.start(), hit.end());
                    Some(SecretMatch { start, end, secret: *finder.owners.get(hit.pattern().as_usize())? })
                }));
            }
        }
        found.sort_by_key(|found| (found.start, Reverse(found.end)));
        found.dedup_by(|next, last| {
            let overlaps = next.start < last.end;
            if overlaps {
                last.end = last.end.max(next.end);
            }
            overlaps
        });
        found
    }
}

/// Creates one finder for all patterns, or several if the patterns are too many for one.
fn finders(mut patterns: Vec<(String, usize)>) -> Vec<Finder> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns.iter().map(|(text, _)| text));
    match automaton {
        Ok(automaton) => vec![Finder { automaton, owners: patterns.into_iter().map(|(_, owner)| owner).collect() }],
        Err(_) if patterns.len() == 1 => Vec::new(),
        Err(_) => {
            let rest = patterns.split_off(patterns.len() / 2);
            finders(patterns).into_iter().chain(finders(rest)).collect()
        }
    }
}
