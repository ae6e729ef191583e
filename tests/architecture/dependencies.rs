//! Dependencies: each has its reason, and a licence that goes with ours.

use std::collections::BTreeSet;
use std::fs;

use super::{assert_none, members, metadata, place, root};

/// Licences that go with MIT OR Apache-2.0.
const LICENCES: [&str; 12] =
    ["MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "Unlicense", "0BSD", "BSL-1.0", "CC0-1.0"];

#[test]
fn every_dependency_has_its_reason() {
    let metadata = metadata();
    let reasons = fs::read_to_string(root().join("docs/dependencies.md")).expect("docs/dependencies.md");
    let used: BTreeSet<_> = members(&metadata)
        .iter()
        .flat_map(|package| package.dependencies.iter().map(|dependency| dependency.name.clone()))
        .filter(|name| place(name).is_none())
        .collect();
    let given: BTreeSet<_> =
        reasons.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned())).collect();
    let missing: Vec<_> = used.difference(&given).cloned().collect();
    assert_none(&missing, "dependencies without a reason in docs/dependencies.md:");
    let stale: Vec<_> = given.difference(&used).cloned().collect();
    assert_none(&stale, "reasons for dependencies that are gone:");
}

/// Reads `A OR B …` and says whether one of them fits.
fn any_of(rest: &mut &[&str]) -> bool {
    let mut fits = all_of(rest);
    while let Some((&"OR", tail)) = rest.split_first() {
        *rest = tail;
        fits |= all_of(rest);
    }
    fits
}

/// Reads `A AND (B OR C) …` and says whether all of them fit.
fn all_of(rest: &mut &[&str]) -> bool {
    let mut fits = true;
    loop {
        match rest.split_first() {
            Some((&"(", tail)) => {
                *rest = tail;
                fits &= any_of(rest);
                *rest = rest.split_first().map_or(&[], |(_, tail)| tail);
            }
            Some((name, tail)) => {
                *rest = tail;
                fits &= LICENCES.contains(name);
            }
            None => return false,
        }
        match rest.split_first() {
            Some((&"AND", tail)) => *rest = tail,
            _ => return fits,
        }
    }
}

#[test]
fn licences_go_with_ours() {
    let metadata = metadata();
    let fits = |expression: &str| {
        let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH LLVM-exception", "");
        let tokens: Vec<&str> = text.split_whitespace().collect();
        let mut rest = tokens.as_slice();
        any_of(&mut rest) && rest.is_empty()
    };
    let broken: Vec<_> = metadata
        .packages
        .iter()
        .filter(|package| !package.license.as_deref().is_some_and(fits))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    assert_none(&broken, "licences that do not go with MIT OR Apache-2.0:");
    assert!(fits("(MIT OR GPL-3.0) AND ISC") && !fits("(MIT OR Apache-2.0) AND GPL-3.0") && !fits("GPL-2.0"), "the check itself");
}
