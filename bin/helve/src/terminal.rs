//! What people see: colour only on a terminal, text of strangers never raw, a broken pipe never a panic.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::{LazyLock, OnceLock};

use anstyle::{AnsiColor, Style};
use helve::internal::printable;
use helve::secret::Redactor;

/// What stands out.
pub const STRONG: Style = Style::new().bold();
/// What steps back.
pub const FAINT: Style = Style::new().dimmed();
/// What went well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What needs a second look.
pub const CAREFUL: Style = AnsiColor::Yellow.on_default();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Text in a style. Colours are taken out again where no terminal listens.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Knows the secrets that no line may show. Set once, before anything is printed.
static GUARD: OnceLock<Redactor> = OnceLock::new();

/// Keeps known secrets off the terminal, whoever prints.
pub fn guard(redactor: &Redactor) {
    let _ = GUARD.set(redactor.clone());
}

/// What the terminal is guarded with.
pub fn redactor() -> &'static Redactor {
    GUARD.get_or_init(Redactor::default)
}

/// Knows the secrets of this user's environment, and no others.
static OWN: LazyLock<Redactor> = LazyLock::new(|| {
    let own = Redactor::default();
    own.add_environment();
    own
});

/// A text without secrets.
pub fn clean(line: &str) -> Cow<'_, str> {
    GUARD.get().and_then(|redactor| redactor.clean(line)).map_or(Cow::Borrowed(line), Cow::Owned)
}

/// Prints one line on stdout. A reader who went away is no error.
pub fn print(line: &str) {
    let _ = writeln!(anstream::stdout(), "{}", clean(line));
}

/// Prints a piece of text on stdout and ends no line, so that text can appear as it comes.
pub fn write(text: &str) {
    let mut stdout = anstream::stdout();
    let _ = write!(stdout, "{}", clean(text)).and_then(|()| stdout.flush());
}

/// Prints one line on stderr.
pub fn note(line: &str) {
    let _ = writeln!(anstream::stderr(), "{}", clean(line));
}

/// Prints one line on stderr that a person decides about: only secrets of this user's environment are masked, because a
/// stranger's file could call anything a secret.
pub fn note_exactly(line: &str) {
    let _ = writeln!(anstream::stderr(), "{}", OWN.clean(line).unwrap_or_else(|| line.to_owned()));
}

/// Prints a document on stdout as JSON that a person decides about, like [`note_exactly`].
pub fn json_exactly(mut document: serde_json::Value) {
    OWN.clean_value(&mut document);
    let _ = writeln!(anstream::stdout(), "{}", printable::json(&document));
}

/// Prints a document on stdout as JSON. Secrets are taken out of its values, so that it stays JSON; characters that would fool a
/// terminal are escaped, which changes no value.
pub fn json(mut document: serde_json::Value) {
    if let Some(redactor) = GUARD.get() {
        redactor.clean_value(&mut document);
    }
    let _ = writeln!(anstream::stdout(), "{}", printable::json(&document));
}

/// Says what went wrong and what to do next.
pub fn error(message: &str, hint: Option<&str>) {
    note(&format!("{} {message}", styled(BAD, "error:")));
    if let Some(hint) = hint {
        note(&format!("{} {hint}", styled(CAREFUL, "hint:")));
    }
}

/// Rewrites the last line of stderr, to show progress; an empty text takes it away.
pub fn progress(text: &str) {
    // Where colours are unwanted they are taken out here, because with them would go what clears the line.
    let mut stderr = io::stderr();
    let plain = anstream::AutoStream::choice(&stderr) == anstream::ColorChoice::Never;
    let text = if plain { clean(text) } else { styled(FAINT, &clean(text)).into() };
    let _ = write!(stderr, "\r\u{1b}[2K{text}").and_then(|()| stderr.flush());
}

/// Whether a person can be asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Forgets what was typed before a request was there to be read: it cannot have been meant as its answer.
pub fn forget_typed() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Whether a person watches stderr.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// How wide the terminal on stdout is; wide enough for everything where there is none.
pub fn width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(usize::MAX, |(width, _)| width.0.into())
}

/// Asks a request and reads one line; nothing where the input ends.
pub fn ask(request: &str) -> Option<String> {
    let mut stderr = anstream::stderr();
    let _ = write!(stderr, "{} ", clean(request)).and_then(|()| stderr.flush());
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}
