//! The status line: shows running work on the last line of a terminal, and disappears afterwards.
//!
//! The status line has no timer. The caller calls [`Spinner::tick`] about ten times a second, and prints with [`Spinner::write`] or
//! inside [`Spinner::suspend`] while work is running.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve::internal::printable;
use parking_lot::Mutex;
use unicode_width::UnicodeWidthStr;

use super::cut;
use super::preview::duration;
use crate::terminal;

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME: Duration = Duration::from_millis(100);

/// The status line. Clones share the same line.
#[derive(Debug, Clone)]
pub struct Spinner {
    state: Arc<Mutex<State>>,
}

/// An entry of the status line. Dropping the value removes the entry.
#[derive(Debug)]
#[must_use = "dropping it removes it from the status line"]
pub struct StatusEntry {
    id: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether there is a terminal to draw on.
    watched: bool,
    /// Id, label and start of each entry, oldest first.
    entries: Vec<(u64, String, Instant)>,
    last_id: u64,
    /// Whether the status line is drawn now.
    shown: bool,
    /// Whether the printed text ends in the middle of a line, which the status line would overwrite.
    midline: bool,
    /// Number of callers that have suspended the status line.
    suspended: usize,
}

impl Spinner {
    /// Creates a status line on stderr, if stderr is a terminal that can clear a line and stdout is also a terminal: a program that
    /// reads stdout may print on the same terminal at any time.
    pub fn new() -> Self {
        let dumb = helve::internal::environment::var_os("TERM").is_some_and(|term| term == "dumb");
        Self::watched(terminal::is_watched() && io::stdout().is_terminal() && !dumb)
    }

    fn watched(watched: bool) -> Self {
        Self { state: Arc::new(Mutex::new(State { watched, ..State::default() })) }
    }

    /// Adds an entry, which is shown from the next tick on.
    pub fn start(&self, label: &str) -> StatusEntry {
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.entries.push((id, printable::escape_line(label), Instant::now()));
        StatusEntry { id, state: self.state.clone() }
    }

    /// Redraws the status line.
    pub fn tick(&self) {
        self.state.lock().draw(Instant::now());
    }

    /// Hides the status line while `print` runs. The output of `print` must end with a newline.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        {
            let mut state = self.state.lock();
            state.suspended += 1;
            state.clear();
        }
        // A panic in `print` must not hide the status line forever.
        let _guard = SuspendGuard(&self.state);
        print()
    }

    /// Prints text on stdout. If the text ends in the middle of a line, the status line stays hidden until the line ends.
    pub fn write(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.suspend(|| {
            terminal::write(text);
            self.state.lock().midline = !text.ends_with('\n');
        });
    }
}

struct SuspendGuard<'a>(&'a Mutex<State>);

impl Drop for SuspendGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().suspended -= 1;
    }
}

impl Drop for StatusEntry {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.entries.retain(|(id, ..)| *id != self.id);
        if state.entries.is_empty() {
            state.clear();
        }
    }
}

impl State {
    fn draw(&mut self, now: Instant) {
        if !self.watched || self.midline || self.suspended > 0 {
            return;
        }
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
        match self.line(now, width) {
            Some(line) => {
                terminal::progress(&line);
                self.shown = true;
            }
            None => self.clear(),
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            terminal::progress("");
        }
    }

    /// Returns the text of the status line, narrower than the terminal so that it never wraps.
    fn line(&self, now: Instant, width: usize) -> Option<String> {
        let (_, label, begun) = self.entries.first()?;
        let elapsed = now.saturating_duration_since(*begun);
        let frame = FRAMES[usize::try_from(elapsed.as_millis() / FRAME.as_millis()).unwrap_or(0) % FRAMES.len()];
        let time = match elapsed.as_secs() {
            0..60 => format!("{:.1} s", elapsed.as_secs_f64()),
            _ => duration(elapsed),
        };
        let more = self.entries.len() - 1;
        let tail = if more > 0 { format!("{time} +{more}") } else { time };
        let room = width.saturating_sub(tail.width() + 4);
        Some(cut(&format!("{frame} {} {tail}", cut(label, room)), width.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(spinner: &Spinner, after: u64, width: usize) -> Option<String> {
        let state = spinner.state.lock();
        let begun = state.entries.first().map_or_else(Instant::now, |(_, _, begun)| *begun);
        state.line(begun + Duration::from_millis(after), width)
    }

    #[test]
    fn the_oldest_is_shown_and_the_others_are_counted() {
        let spinner = Spinner::watched(false);
        assert_eq!(line(&spinner, 0, 80), None);
        let first = spinner.start("add(a=2, b=3)");
        assert_eq!(line(&spinner, 1_234, 80).as_deref(), Some("⠹ add(a=2, b=3) 1.2 s"));
        let second = spinner.start("wait\u{1b}[2J\n");
        let third = spinner.start("third");
        assert_eq!(line(&spinner, 0, 80).as_deref(), Some("⠋ add(a=2, b=3) 0.0 s +2"));
        drop(first);
        assert_eq!(line(&spinner, 65_000, 80).as_deref(), Some(r"⠋ wait\u{1b}[2J\n 1 min 5 s +1"));
        drop((second, third));
        assert_eq!(line(&spinner, 0, 80), None);
    }

    #[test]
    fn it_is_never_wider_than_the_terminal() {
        let spinner = Spinner::watched(false);
        let _running = spinner.start("查询天气(城市=上海, 单位=摄氏度)");
        assert_eq!(line(&spinner, 100, 24).as_deref(), Some("⠙ 查询天气(城市=… 0.1 s"));
        for width in 0..60 {
            assert!(line(&spinner, 0, width).is_some_and(|line| line.width() < width.max(2)), "{width}");
        }
    }

    #[test]
    fn it_waits_for_text_to_end_its_line() {
        let spinner = Spinner::watched(false);
        let inner = spinner.clone();
        assert_eq!(spinner.suspend(|| inner.suspend(|| inner.state.lock().suspended)), 2);
        assert_eq!(spinner.state.lock().suspended, 0);
        assert!(!spinner.state.lock().midline);
        spinner.write("");
        spinner.state.lock().midline = true;
        assert!(spinner.state.lock().midline);
    }
}
