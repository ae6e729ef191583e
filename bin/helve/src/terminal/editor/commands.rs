//! Completion and hints for commands that start with a slash.

use std::borrow::Cow;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::terminal::{FAINT, cut, styled};

/// Maximum width of a hint, in columns.
const HINT: usize = 60;

/// The commands that the editor completes.
pub struct Commands {
    /// Names with their slash, and descriptions.
    list: Vec<(String, String)>,
}

/// The hint after the cursor.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandHint {
    shown: String,
    /// The text that the right arrow key inserts.
    rest: Option<String>,
}

impl Commands {
    /// Creates the list from names, with or without a slash, and descriptions.
    pub fn new(commands: &[(&str, &str)]) -> Self {
        let list = commands.iter().map(|(name, does)| (format!("/{}", name.trim_start_matches('/')), (*does).to_owned()));
        Self { list: list.collect() }
    }

    /// Returns the commands that start with `start`; none if `start` has no slash.
    fn matching(&self, start: &str) -> Vec<&(String, String)> {
        if !start.starts_with('/') || start.contains(char::is_whitespace) {
            return Vec::new();
        }
        self.list.iter().filter(|(name, _)| name.starts_with(start)).collect()
    }

    fn candidates(&self, line: &str, cursor: usize) -> Vec<Pair> {
        let found = self.matching(&line[..cursor]);
        let longest = found.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        found.iter().map(|(name, does)| Pair { display: format!("{name:longest$}  {does}"), replacement: name.clone() }).collect()
    }

    fn suggest(&self, line: &str, cursor: usize) -> Option<CommandHint> {
        if cursor < line.len() {
            return None;
        }
        let found = self.matching(line);
        match found.as_slice() {
            [] => None,
            [(name, does)] => {
                let rest = &name[line.len()..];
                Some(CommandHint { shown: format!("{rest}  {does}"), rest: (!rest.is_empty()).then(|| rest.to_owned()) })
            }
            several => {
                let names: Vec<_> = several.iter().map(|(name, _)| name.as_str()).collect();
                Some(CommandHint { shown: cut(&format!("  {}", names.join(" ")), HINT), rest: None })
            }
        }
    }
}

impl Completer for Commands {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok((0, self.candidates(line, cursor)))
    }
}

impl Hinter for Commands {
    type Hint = CommandHint;

    fn hint(&self, line: &str, cursor: usize, _: &Context<'_>) -> Option<CommandHint> {
        self.suggest(line, cursor)
    }
}

impl Hint for CommandHint {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        self.rest.as_deref()
    }
}

impl Highlighter for Commands {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        styled(FAINT, hint).into()
    }

    fn highlight_candidate<'c>(&self, candidate: &'c str, _: rustyline::CompletionType) -> Cow<'c, str> {
        match candidate.split_once("  ") {
            Some((name, does)) => format!("{name}  {}", styled(FAINT, does)).into(),
            None => candidate.into(),
        }
    }
}

impl Validator for Commands {}
impl Helper for Commands {}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Commands {
        Commands::new(&[("help", "says what can be typed"), ("/model", "chooses a model"), ("history", "shows it"), ("he", "short")])
    }

    #[test]
    fn commands_are_completed() {
        let found = |line: &str, cursor| commands().candidates(line, cursor).into_iter().map(|pair| pair.replacement).collect::<Vec<_>>();
        assert_eq!(found("/h", 2), ["/help", "/history", "/he"]);
        assert_eq!(found("/model", 2), ["/model"]);
        for none in ["", "x", "/help me", " /h", "/x"] {
            assert!(found(none, none.len()).is_empty(), "{none}");
        }
        assert_eq!(commands().candidates("/h", 2)[2].display, "/he       short");
    }

    #[test]
    fn hints_say_what_a_command_does() {
        let hint = |line: &str| commands().suggest(line, line.len());
        assert_eq!(hint("/m"), Some(CommandHint { shown: "odel  chooses a model".to_owned(), rest: Some("odel".to_owned()) }));
        assert_eq!(hint("/model"), Some(CommandHint { shown: "  chooses a model".to_owned(), rest: None }));
        assert_eq!(hint("/").and_then(|hint| hint.rest), None);
        assert_eq!(hint("/h").map(|hint| hint.shown).as_deref(), Some("  /help /history /he"));
        assert_eq!(hint("what"), None);
        assert_eq!(commands().suggest("/model", 2), None);
    }
}
