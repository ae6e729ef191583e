//! Reads lines that a person types, with editing, history and completion on a terminal, and plain lines otherwise.

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
use super::{FAINT, styled};

/// Maximum number of lines in the history.
const MAX_HISTORY: usize = 1_000;
/// Maximum length of a line in the history, in bytes. It keeps pasted files out of the history.
const MAX_HISTORY_LINE: usize = 16 << 10;

/// Prompt of a continued line.
const CONTINUED: &str = "… ";

/// The input that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A line, or several joined by a backslash or Alt-Enter.
    Line(String),
    /// Ctrl-C on an empty line. A second Ctrl-C is [`Input::End`].
    Interrupted,
    /// End of the input: Ctrl-D, a second Ctrl-C, or the end of the file.
    End,
}

/// A line editor.
pub struct Editor {
    source: Source,
    history: Option<PathBuf>,
    /// Whether the last input was Ctrl-C on an empty line.
    interrupted: bool,
    /// Whether Ctrl-C has cleared a line since then.
    cleared: Arc<AtomicBool>,
}

enum Source {
    Terminal(Box<rustyline::Editor<Commands, DefaultHistory>>),
    Lines(Box<dyn BufRead + Send>),
}

impl Editor {
    /// Creates an editor with an optional history file. The editor completes `commands`, which are names and descriptions.
    pub fn new(history: Option<&Path>, commands: &[(&str, &str)]) -> Self {
        let cleared = Arc::new(AtomicBool::new(false));
        let terminal = if io::stdin().is_terminal() { terminal(commands, &cleared).ok() } else { None };
        let source =
            terminal.map_or_else(|| Source::Lines(Box::new(io::BufReader::new(io::stdin()))), |editor| Source::Terminal(Box::new(editor)));
        let mut editor = Self { source, history: history.map(Path::to_owned), interrupted: false, cleared };
        editor.load_history();
        editor
    }

    /// Reads the next line and adds it to the history, unless it starts with a space. Blocks.
    pub fn read(&mut self, prompt: &str) -> Input {
        let input = self.next(prompt, "");
        if let Input::Line(line) = &input {
            self.add_history(line);
        }
        input
    }

    /// Reads a line that starts with `initial`, and keeps it out of the history. Blocks.
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
        let mut before = String::new();
        loop {
            let read = if before.is_empty() {
                editor.readline_with_initial(&(plain.as_str(), prompt), (initial, ""))
            } else {
                editor.readline(&(CONTINUED, styled(FAINT, CONTINUED)))
            };
            return match read {
                Ok(line) => match continued(&line) {
                    Some(line) => {
                        before.extend([line, "\n"]);
                        continue;
                    }
                    None => Input::Line((before + &line).trim_end_matches('\n').to_owned()),
                },
                Err(ReadlineError::Interrupted) if !before.is_empty() => {
                    before.clear();
                    continue;
                }
                Err(ReadlineError::Interrupted) if interrupted && !self.cleared.load(Ordering::Relaxed) => Input::End,
                Err(ReadlineError::Interrupted) => {
                    self.interrupted = true;
                    Input::Interrupted
                }
                Err(ReadlineError::Eof) if !before.is_empty() => Input::Line(before.trim_end_matches('\n').to_owned()),
                Err(ReadlineError::Eof) => Input::End,
                Err(error) => {
                    tracing::debug!(%error, "cannot read the terminal");
                    Input::End
                }
            };
        }
    }

    /// Loads the history. A failure is only logged, because the editor works without a history.
    fn load_history(&mut self) {
        let (Source::Terminal(editor), Some(path)) = (&mut self.source, &self.history) else { return };
        let loaded = create_private(path).map_err(ReadlineError::from).and_then(|()| editor.load_history(path));
        if let Err(error) = loaded {
            tracing::debug!(%error, path = %path.display(), "cannot read the history");
        }
    }

    fn add_history(&mut self, line: &str) {
        let Source::Terminal(editor) = &mut self.source else { return };
        // A line with a secret is not written to a file.
        if line.len() > MAX_HISTORY_LINE || line.trim().is_empty() || super::redactor().clean(line).is_some() {
            return;
        }
        let added = editor.add_history_entry(line);
        let Some(path) = &self.history else { return };
        if let Err(error) = added.and_then(|_| editor.append_history(path)) {
            tracing::debug!(%error, path = %path.display(), "cannot write the history");
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
    // The echo of what is typed must not go to a file that stdout is redirected to.
    let behavior = if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .bracketed_paste(true)
        .behavior(behavior);
    Ok(config.build())
}

/// Returns the line without its last backslash if the backslash continues the line. An escaped backslash does not.
fn continued(line: &str) -> Option<&str> {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    line.strip_suffix('\\').filter(|_| backslashes % 2 == 1)
}

/// Creates a file that only this user may read, before any data is written to it.
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

/// Reads the next line of an input that is not a terminal. Invalid UTF-8 is replaced.
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
        editor.load_history();
        editor
    }

    fn history(editor: &Editor) -> Vec<String> {
        let Source::Terminal(editor) = &editor.source else { panic!("a terminal") };
        editor.history().iter().cloned().collect()
    }

    #[test]
    fn lines_are_remembered_privately() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let mut first = editor(&path);
        for line in ["one", "one", " secret", "two\nlines \\", "", "  ", "x".repeat(MAX_HISTORY_LINE + 1).as_str(), "three", "one"] {
            first.add_history(line);
        }
        let expected = ["one", "two\nlines \\", "three", "one"];
        assert_eq!(history(&first), expected);
        assert_eq!(history(&editor(&path)), expected);
        assert!(!fs::read_to_string(&path).expect("a file").contains("secret"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = || fs::metadata(&path).expect("a file").permissions().mode() & 0o777;
            assert_eq!(mode(), 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("permissions");
            editor(&path).add_history("four");
            assert_eq!(mode(), 0o600);
        }
    }

    #[test]
    fn the_history_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let mut first = editor(&path);
        (0..MAX_HISTORY + 50).for_each(|number| first.add_history(&number.to_string()));
        let Source::Terminal(again) = &editor(&path).source else { panic!("a terminal") };
        assert_eq!(again.history().len(), MAX_HISTORY);
        assert_eq!(again.history().iter().next().map(String::as_str), Some("50"));
        assert_eq!(fs::read_to_string(&path).expect("a file").lines().count(), MAX_HISTORY + 1);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_no_harm() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut editor = editor(folder.path());
        editor.add_history("one");
        assert_eq!(history(&editor), ["one"]);
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
    fn a_backslash_at_the_end_continues_the_line() {
        assert_eq!([continued(r"a \"), continued(r"\"), continued(r"\\\")], [Some("a "), Some(""), Some(r"\\")]);
        assert_eq!([continued("a"), continued(r"a\\"), continued(""), continued(r"a\ ")], [None; 4]);
    }

    #[test]
    fn it_can_wait_on_a_thread_of_its_own() {
        fn is_send<T: Send>() {}
        is_send::<Editor>();
    }
}
