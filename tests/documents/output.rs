//! Output that a document shows, compared with output that a command gave.

/// Returns whether an output is what a document shows. In the document `…` stands for any text in a line, and alone for any lines.
pub fn fits(shown: &str, given: &str) -> bool {
    let (shown, given) = (without_times(shown), without_times(given));
    let shown: Vec<_> = shown.lines().map(str::trim_end).collect();
    let given: Vec<_> = given.lines().map(str::trim_end).collect();
    lines_fit(&shown, &given)
}

/// A text in which `(12 ms)` and `(<1 ms)` are the same.
fn without_times(text: &str) -> String {
    let mut parts = text.split(" ms)").peekable();
    let mut found = String::new();
    while let Some(part) = parts.next() {
        if parts.peek().is_some() {
            found.push_str(part.trim_end_matches(|character: char| character.is_ascii_digit() || "<.".contains(character)));
            found.push_str(" ms)");
        } else {
            found.push_str(part);
        }
    }
    found
}

fn lines_fit(shown: &[&str], given: &[&str]) -> bool {
    match shown {
        [] => given.iter().all(|line| line.is_empty()),
        [first, rest @ ..] if first.trim() == "…" => (0..=given.len()).any(|left_out| lines_fit(rest, &given[left_out..])),
        [first, rest @ ..] => given.split_first().is_some_and(|(line, given)| line_fits(first, line) && lines_fit(rest, given)),
    }
}

fn line_fits(shown: &str, given: &str) -> bool {
    match shown.split_once('…') {
        None => shown == given,
        Some((before, after)) => given.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(place, _)| place).chain([rest.len()]).any(|place| line_fits(after, &rest[place..]))
        }),
    }
}

#[test]
fn dots_stand_for_what_is_left_out() {
    assert!(fits("a\nb", "a  \nb\n"));
    assert!(fits("a …\n…\nz", "a line\nb\nc\nz"));
    assert!(fits("✓ 42 (2 ms)", "✓ 42 (<1 ms)"));
    assert!(!fits("a\nb", "a"));
    assert!(!fits("a", "a\nb"));
    assert!(!fits("a … c", "a b"));
}
