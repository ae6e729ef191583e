//! The status line: what runs at this moment, on the last line of a terminal and without a trace afterwards.
//!
//! Nothing happens by itself. Whoever waits calls [`Spinner::tick`] about ten times a second, and prints through
//! [`Spinner::write`] or inside [`Spinner::suspend`] as long as something runs.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve::internal::printable;
use parking_lot::{Mutex, MutexGuard};
use unicode_width::UnicodeWidthStr;

use crate::table::cut;
use crate::terminal;

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME: Duration = Duration::from_millis(100);

/// The status line. Its copies are one and the same.
#[derive(Debug, Clone)]
pub struct Spinner {
    state: Arc<Mutex<State>>,
}

/// Something that runs. It leaves the status line when this is dropped.
#[derive(Debug)]
#[must_use = "dropping it takes it off the status line"]
pub struct Running {
    id: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a person watches.
    watched: bool,
    /// What runs, the oldest first.
    running: Vec<(u64, String, Instant)>,
    last_id: u64,
    /// Whether the status line is on the terminal now.
    shown: bool,
    /// Whether text was printed that has not ended its line. The status line would overwrite it.
    midline: bool,
    /// How many are printing.
    suspended: usize,
}

impl Spinner {
    /// A status line on stderr, or none if that is no terminal that can clear a line. If stdout is none, there is none
    /// either: whoever reads it may print on the same terminal at any time.
    pub fn new() -> Self {
        let dumb = helve::internal::environment::var_os("TERM").is_some_and(|term| term == "dumb");
        Self::watched(terminal::is_watched() && io::stdout().is_terminal() && !dumb)
    }

    fn watched(watched: bool) -> Self {
        Self { state: Arc::new(Mutex::new(State { watched, ..State::default() })) }
    }

    /// Shows from the next tick on that this runs.
    pub fn start(&self, label: &str) -> Running {
        let mut state = lock(&self.state);
        state.last_id += 1;
        let id = state.last_id;
        state.running.push((id, printable::escape_line(label), Instant::now()));
        Running { id, state: self.state.clone() }
    }

    /// Draws the status line as it is now.
    pub fn tick(&self) {
        lock(&self.state).draw(Instant::now());
    }

    /// Takes the status line away while something else is printed, which must end its last line.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        {
            let mut state = lock(&self.state);
            state.suspended += 1;
            state.clear();
        }
        // A print that panics must not keep the status line away for good.
        let _resumed = Resume(&self.state);
        print()
    }

    /// Prints a piece of text on stdout. If it ends in the middle of a line, the status line waits for the rest.
    pub fn write(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.suspend(|| {
            terminal::write(text);
            lock(&self.state).midline = !text.ends_with('\n');
        });
    }
}

struct Resume<'a>(&'a Mutex<State>);

impl Drop for Resume<'_> {
    fn drop(&mut self) {
        lock(self.0).suspended -= 1;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.running.retain(|(id, ..)| *id != self.id);
        if state.running.is_empty() {
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

    /// What the status line says, narrower than the terminal so that it never becomes two lines.
    fn line(&self, now: Instant, width: usize) -> Option<String> {
        let (_, label, begun) = self.running.first()?;
        let elapsed = now.saturating_duration_since(*begun);
        let frame = FRAMES[usize::try_from(elapsed.as_millis() / FRAME.as_millis()).unwrap_or(0) % FRAMES.len()];
        let time = match elapsed.as_secs() {
            0..60 => format!("{:.1} s", elapsed.as_secs_f64()),
            _ => super::preview::duration(elapsed),
        };
        let more = self.running.len() - 1;
        let tail = if more > 0 { format!("{time} +{more}") } else { time };
        let room = width.saturating_sub(tail.width() + 4);
        Some(cut(&format!("{frame} {} {tail}", cut(label, room)), width.saturating_sub(1)))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(spinner: &Spinner, after: u64, width: usize) -> Option<String> {
        let state = lock(&spinner.state);
        let begun = state.running.first().map_or_else(Instant::now, |(_, _, begun)| *begun);
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
        assert_eq!(spinner.suspend(|| inner.suspend(|| lock(&inner.state).suspended)), 2);
        assert_eq!(lock(&spinner.state).suspended, 0);
        assert!(!lock(&spinner.state).midline);
        spinner.write("");
        lock(&spinner.state).midline = true;
        assert!(lock(&spinner.state).midline);
    }
}
