//! Rewrites the names of tools in descriptions: if a tool is renamed, the descriptions of other tools use its new name.
//!
//! A name that is also an ordinary word (`write`) counts only in quotes: "you can write files" does not mention a tool.

use aho_corasick::{AhoCorasick, MatchKind};

/// Replaces old tool names in text with new ones. Only whole words count.
#[derive(Debug)]
pub struct Mentions {
    finder: Option<AhoCorasick>,
    new: Vec<NewName>,
}

#[derive(Debug)]
struct NewName {
    name: String,
    only_quoted: bool,
}

impl Mentions {
    /// Creates a replacer from pairs of old and new names. Pairs of equal names are ignored.
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (old, new): (Vec<_>, Vec<_>) =
            names.into_iter().filter(|(old, new)| old != new).map(|(old, new)| (old.to_owned(), NewName::of(old, new))).unzip();
        let finder = if old.is_empty() { None } else { AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(old).ok() };
        Self { finder, new }
    }

    /// Returns the text with new names, or `None` if the text mentions no old name.
    #[must_use]
    pub fn rewrite(&self, text: &str) -> Option<String> {
        let finder = self.finder.as_ref()?;
        let mut rewritten: Option<String> = None;
        let mut copied = 0;
        for found in finder.find_iter(text) {
            let new = &self.new[found.pattern().as_usize()];
            let (start, end) = (found.start(), found.end());
            if !is_word(text, start, end) || (new.only_quoted && !is_quoted(text, start, end)) {
                continue;
            }
            let target = rewritten.get_or_insert_default();
            target.push_str(&text[copied..start]);
            target.push_str(&new.name);
            copied = end;
        }
        if let Some(target) = &mut rewritten {
            target.push_str(&text[copied..]);
        }
        rewritten
    }
}

impl NewName {
    fn of(old: &str, new: &str) -> Self {
        Self { name: new.to_owned(), only_quoted: old.chars().all(char::is_alphabetic) }
    }
}

fn is_quoted(text: &str, start: usize, end: usize) -> bool {
    let quote = text[..start].chars().next_back();
    matches!(quote, Some('`' | '"' | '\'')) && text[end..].chars().next() == quote
}

fn is_word(text: &str, start: usize, end: usize) -> bool {
    let inside = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    // A dot continues a name only if a name character follows. Otherwise it ends a sentence.
    let after = |rest: &str| {
        let mut characters = rest.chars();
        match characters.next() {
            Some('.') => characters.next().is_some_and(inside),
            Some(character) => inside(character),
            None => false,
        }
    };
    let before = text[..start].chars().next_back().is_some_and(|character| inside(character) || character == '.');
    !before && !after(&text[end..])
}

#[cfg(test)]
mod tests {
    use super::Mentions;

    #[test]
    fn only_whole_words_are_renamed() {
        let mentions = Mentions::new([("read_it", "files_read_it"), ("read.all", "files_read_all"), ("same", "same")]);
        let text = "Use read_it (not read_item, pre-read_it or x.read_it), then read.all; read_it.";
        assert_eq!(
            mentions.rewrite(text).as_deref(),
            Some("Use files_read_it (not read_item, pre-read_it or x.read_it), then files_read_all; files_read_it.")
        );
        assert_eq!(mentions.rewrite("same text"), None);
        assert_eq!(Mentions::new([]).rewrite("read"), None);
    }

    #[test]
    fn ordinary_words_are_renamed_only_in_quotes() {
        let mentions = Mentions::new([("read", "files_read")]);
        assert_eq!(
            mentions.rewrite("You can read it with `read` or \"read\".").as_deref(),
            Some("You can read it with `files_read` or \"files_read\".")
        );
        assert_eq!(mentions.rewrite("You can read it."), None);
    }
}
