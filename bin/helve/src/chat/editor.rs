//! The line that a person types: edited with history and completion on a terminal, read as it is elsewhere.

mod commands;
mod keys;

use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::config::BellStyle;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Behavior, CompletionType, Config};

use self::commands::Commands;
use crate::terminal::{FAINT, styled};

/// How many lines are remembered.
const REMEMBERED: usize = 1_000;
/// Longer lines are not remembered: nobody wants a pasted file back by pressing "up".
const LONGEST: usize = 16 << 10;

/// What stands before a line that goes on.
const CONTINUED: &str = "… ";

/// What a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A line, or several that belong together.
    Line(String),
    /// Ctrl-C on an empty line. Once more, and it is the end.
    Interrupted,
    /// Nothing more will come: Ctrl-D, a second Ctrl-C, or the end of the file.
    End,
}

/// Reads what a person types.
pub struct Editor {
    source: Source,
    history: Option<PathBuf>,
    /// Whether the last input was Ctrl-C on an empty line.
    interrupted: bool,
    /// Whether Ctrl-C has cleared a line since.
    cleared: Arc<AtomicBool>,
}

enum Source {
    Terminal(Box<rustyline::Editor<Commands, DefaultHistory>>),
    Lines(Box<dyn BufRead + Send>),
}

impl Editor {
    /// An editor that remembers lines in a file, if there is one, and completes these commands, each with what it does.
    pub fn new(history: Option<&Path>, commands: &[(&str, &str)]) -> Self {
        let cleared = Arc::new(AtomicBool::new(false));
        let terminal = if io::stdin().is_terminal() { terminal(commands, &cleared).ok() } else { None };
        let source =
            terminal.map_or_else(|| Source::Lines(Box::new(io::BufReader::new(io::stdin()))), |editor| Source::Terminal(Box::new(editor)));
        let mut editor = Self { source, history: history.map(Path::to_owned), interrupted: false, cleared };
        editor.recall();
        editor
    }

    /// Reads the next line and remembers it, unless it starts with a space. Blocks until it is there.
    pub fn read(&mut self, prompt: &str) -> Input {
        let input = self.next(prompt, "");
        if let Input::Line(line) = &input {
            self.remember(line);
        }
        input
    }

    /// Reads an answer that is not remembered; `initial` is what it starts with.
    pub fn ask(&mut self, prompt: &str, initial: &str) -> Input {
        self.next(prompt, initial)
    }

    fn next(&mut self, prompt: &str, initial: &str) -> Input {
        let editor = match &mut self.source {
            Source::Lines(lines) => return next_line(lines),
            Source::Terminal(editor) => editor,
        };
        let interrupted = std::mem::take(&mut self.interrupted);
        self.cleared.store(false, Ordering::Relaxed);
        let plain = anstream::adapter::strip_str(prompt).to_string();
        let mut begun = String::new();
        loop {
            let read = if begun.is_empty() {
                editor.readline_with_initial(&(plain.as_str(), prompt), (initial, ""))
            } else {
                editor.readline(&(CONTINUED, styled(FAINT, CONTINUED)))
            };
            return match read {
                Ok(line) => match goes_on(&line) {
                    Some(line) => {
                        begun.extend([line, "\n"]);
                        continue;
                    }
                    None => Input::Line((begun + &line).trim_end_matches('\n').to_owned()),
                },
                Err(ReadlineError::Interrupted) if !begun.is_empty() => {
                    begun.clear();
                    continue;
                }
                Err(ReadlineError::Interrupted) if interrupted && !self.cleared.load(Ordering::Relaxed) => Input::End,
                Err(ReadlineError::Interrupted) => {
                    self.interrupted = true;
                    Input::Interrupted
                }
                Err(ReadlineError::Eof) if !begun.is_empty() => Input::Line(begun.trim_end_matches('\n').to_owned()),
                Err(ReadlineError::Eof) => Input::End,
                Err(error) => {
                    tracing::debug!(%error, "the terminal cannot be read");
                    Input::End
                }
            };
        }
    }

    /// Loads what was typed before. History is a comfort: without it everything still works.
    fn recall(&mut self) {
        let (Source::Terminal(editor), Some(path)) = (&mut self.source, &self.history) else { return };
        let loaded = create_private(path).map_err(ReadlineError::from).and_then(|()| editor.load_history(path));
        if let Err(error) = loaded {
            tracing::debug!(%error, path = %path.display(), "the history cannot be read");
        }
    }

    fn remember(&mut self, line: &str) {
        let Source::Terminal(editor) = &mut self.source else { return };
        // What was typed with a secret in it is not written to a file.
        if line.len() > LONGEST || line.trim().is_empty() || crate::terminal::redactor().clean(line).is_some() {
            return;
        }
        let added = editor.add_history_entry(line);
        let Some(path) = &self.history else { return };
        if let Err(error) = added.and_then(|_| editor.append_history(path)) {
            tracing::debug!(%error, path = %path.display(), "the history cannot be written");
        }
    }
}

fn terminal(commands: &[(&str, &str)], cleared: &Arc<AtomicBool>) -> rustyline::Result<rustyline::Editor<Commands, DefaultHistory>> {
    let mut editor = rustyline::Editor::with_config(config()?)?;
    editor.set_helper(Some(Commands::new(commands)));
    keys::bind(&mut editor, cleared);
    Ok(editor)
}

fn config() -> rustyline::Result<Config> {
    // What is typed does not belong into a file that stdout goes to.
    let behavior = if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder()
        .max_history_size(REMEMBERED)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .bracketed_paste(true)
        .behavior(behavior);
    Ok(config.build())
}

/// A line that ends with a backslash goes on, without it. Two of them are just two.
fn goes_on(line: &str) -> Option<&str> {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    line.strip_suffix('\\').filter(|_| backslashes % 2 == 1)
}

/// Makes the file that only this user may read, before anything is written to it.
fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}

/// The next line of what is no terminal. What is no UTF-8 in it is replaced.
fn next_line(lines: &mut dyn BufRead) -> Input {
    let mut line = Vec::new();
    match lines.read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => Input::End,
        Ok(_) => Input::Line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustyline::history::History;

    use super::*;

    /// An editor as on a terminal, which it does not need until it reads.
    fn editor(path: &Path) -> Editor {
        let cleared = Arc::default();
        let source = Source::Terminal(Box::new(terminal(&[], &cleared).expect("an editor")));
        let mut editor = Editor { source, history: Some(path.to_owned()), interrupted: false, cleared };
        editor.recall();
        editor
    }

    fn remembered(editor: &Editor) -> Vec<String> {
        let Source::Terminal(editor) = &editor.source else { panic!("a terminal") };
        editor.history().iter().cloned().collect()
    }

    #[test]
    fn lines_are_remembered_privately() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let mut first = editor(&path);
        for line in ["one", "one", " secret", "two\nlines \\", "", "  ", "x".repeat(LONGEST + 1).as_str(), "three", "one"] {
            first.remember(line);
        }
        let expected = ["one", "two\nlines \\", "three", "one"];
        assert_eq!(remembered(&first), expected);
        assert_eq!(remembered(&editor(&path)), expected);
        assert!(!fs::read_to_string(&path).expect("a file").contains("secret"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = || fs::metadata(&path).expect("a file").permissions().mode() & 0o777;
            assert_eq!(mode(), 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("permissions");
            editor(&path).remember("four");
            assert_eq!(mode(), 0o600);
        }
    }

    #[test]
    fn the_history_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let mut first = editor(&path);
        (0..REMEMBERED + 50).for_each(|number| first.remember(&number.to_string()));
        let Source::Terminal(again) = &editor(&path).source else { panic!("a terminal") };
        assert_eq!(again.history().len(), REMEMBERED);
        assert_eq!(again.history().iter().next().map(String::as_str), Some("50"));
        assert_eq!(fs::read_to_string(&path).expect("a file").lines().count(), REMEMBERED + 1);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_no_harm() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut editor = editor(folder.path());
        editor.remember("one");
        assert_eq!(remembered(&editor), ["one"]);
    }

    #[test]
    fn what_is_no_terminal_is_read_by_lines() {
        let lines = io::Cursor::new(b"one\r\n two \\\n\n\xff\nlast");
        let mut editor = Editor { source: Source::Lines(Box::new(lines)), history: None, interrupted: false, cleared: Arc::default() };
        let read: Vec<_> = std::iter::from_fn(|| match editor.read("> ") {
            Input::Line(line) => Some(line),
            other => (other != Input::End).then(String::new),
        })
        .collect();
        assert_eq!(read, ["one", " two \\", "", "\u{fffd}", "last"]);
        assert_eq!(editor.ask("> ", ""), Input::End);
    }

    #[test]
    fn a_backslash_at_the_end_goes_on() {
        assert_eq!([goes_on(r"a \"), goes_on(r"\"), goes_on(r"\\\")], [Some("a "), Some(""), Some(r"\\")]);
        assert_eq!([goes_on("a"), goes_on(r"a\\"), goes_on(""), goes_on(r"a\ ")], [None; 4]);
    }

    #[test]
    fn it_can_wait_on_a_thread_of_its_own() {
        fn is_send<T: Send>() {}
        is_send::<Editor>();
    }
}
