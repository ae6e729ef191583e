//! Output and prompts on the terminal. Styles are used only on a terminal, untrusted text is escaped, secrets are redacted, and a broken
//! pipe does not panic. The widgets are in the folder of this module.

pub mod editor;
pub mod language;
pub mod markdown;
pub mod preview;
pub mod spinner;
pub mod table;

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::{LazyLock, OnceLock};

use anstyle::{AnsiColor, Style};
use helve::internal::printable;
use helve::secret::Redactor;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Emphasis: names and headings.
pub const STRONG: Style = Style::new().bold();
/// Secondary text.
pub const FAINT: Style = Style::new().dimmed();
/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Warnings and questions.
pub const CAREFUL: Style = AnsiColor::Yellow.on_default();
/// Errors.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Returns text in a style. The functions below strip styles if they do not write to a terminal.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Returns a number with its noun: `1 tool`, `2 tools`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Cuts text without styles to a width, with an ellipsis at the cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let kept: String = text
        .chars()
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used < width
        })
        .collect();
    format!("{}…", kept.trim_end())
}

/// The redactor of all output. Set once, before anything is printed.
static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Sets the redactor of all output.
pub fn set_redactor(redactor: &Redactor) {
    let _ = REDACTOR.set(redactor.clone());
}

/// Returns the redactor of all output.
pub fn redactor() -> &'static Redactor {
    REDACTOR.get_or_init(Redactor::default)
}

/// A redactor that knows only the secrets in environment variables.
static ENVIRONMENT: LazyLock<Redactor> = LazyLock::new(|| {
    let redactor = Redactor::default();
    redactor.add_environment();
    redactor
});

/// Returns the line with secrets redacted.
pub fn clean(line: &str) -> Cow<'_, str> {
    redactor().clean(line).map_or(Cow::Borrowed(line), Cow::Owned)
}

/// Prints one line on stdout. A closed pipe is not an error.
pub fn print(line: &str) {
    let _ = writeln!(anstream::stdout(), "{}", clean(line));
}

/// Prints text on stdout without a newline, and flushes it, so that streamed text appears at once.
pub fn write(text: &str) {
    let mut stdout = anstream::stdout();
    let _ = write!(stdout, "{}", clean(text)).and_then(|()| stdout.flush());
}

/// Prints one line on stderr.
pub fn note(line: &str) {
    let _ = writeln!(anstream::stderr(), "{}", clean(line));
}

/// Prints one line on stderr in secondary style.
pub fn note_faintly(line: &str) {
    note(&styled(FAINT, line));
}

/// Prints one line on stderr that a person bases a decision on. Only secrets in environment variables are redacted: a file
/// of the project could declare any text a secret, and so hide it.
pub fn note_exactly(line: &str) {
    let _ = writeln!(anstream::stderr(), "{}", ENVIRONMENT.clean(line).unwrap_or_else(|| line.to_owned()));
}

/// Prints a document on stdout as JSON. Secrets are redacted in its values, so that it stays valid JSON; deceptive characters
/// are escaped, which changes no value.
pub fn json(document: serde_json::Value) {
    print_json(document, redactor());
}

/// Like [`json`], but redacts only what [`note_exactly`] redacts.
pub fn json_exactly(document: serde_json::Value) {
    print_json(document, &ENVIRONMENT);
}

fn print_json(mut document: serde_json::Value, redactor: &Redactor) {
    redactor.clean_value(&mut document);
    let _ = writeln!(anstream::stdout(), "{}", printable::json(&document));
}

/// Prints an error and its hint on stderr.
pub fn error(message: &str, hint: Option<&str>) {
    note(&format!("{} {message}", styled(BAD, "error:")));
    if let Some(hint) = hint {
        note(&format!("{} {hint}", styled(CAREFUL, "hint:")));
    }
}

/// Rewrites the last line of stderr to show progress; an empty text clears it.
pub fn progress(text: &str) {
    // Styles are stripped by hand, because the stream would also strip the sequence that clears the line.
    let mut stderr = io::stderr();
    let plain = anstream::AutoStream::choice(&stderr) == anstream::ColorChoice::Never;
    let text = if plain { clean(text) } else { styled(FAINT, &clean(text)).into() };
    let _ = write!(stderr, "\r\u{1b}[2K{text}").and_then(|()| stderr.flush());
}

/// Returns whether a person can be asked: stdin and stderr are terminals.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Discards input that was typed before a prompt was shown: it cannot be a response to the prompt.
pub fn discard_typed() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Returns whether stderr is a terminal.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Returns the width of the terminal on stdout in columns; unlimited if stdout is not a terminal.
pub fn width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(usize::MAX, |(width, _)| width.0.into())
}

/// Shows a prompt and reads one line. Returns `None` at the end of the input.
pub fn ask(prompt: &str) -> Option<String> {
    let mut stderr = anstream::stderr();
    let _ = write!(stderr, "{} ", clean(prompt)).and_then(|()| stderr.flush());
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}
