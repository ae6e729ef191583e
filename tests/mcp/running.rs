//! Processes that tests start: read while they run, never waited for without end, and gone when a test is over.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Nothing takes this long, not even on a machine that has much else to do.
pub const LONGEST: Duration = Duration::from_mins(2);

/// Waits until something is there.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LONGEST, "this does not come: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A process, and what it has said.
pub struct Running {
    child: Child,
    stdout: Said,
    stderr: Said,
}

/// What a process says on one of its pipes.
struct Said(Arc<Mutex<String>>, Option<JoinHandle<()>>);

impl Said {
    fn read(pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = text.clone();
        let reader = thread::spawn(move || {
            let mut lines = BufReader::new(pipe);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                shared.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self(text, Some(reader))
    }

    fn so_far(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn all(&mut self) -> String {
        if let Some(reader) = self.1.take() {
            reader.join().expect("a reader");
        }
        self.so_far()
    }
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let (stdout, stderr) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
        Self { child, stdout: Said::read(stdout), stderr: Said::read(stderr) }
    }

    /// Waits for a line that has these words, and gives what stands between them.
    pub fn wait_for(&mut self, before: &str, after: &str) -> String {
        until(before, || {
            let said = self.stdout.so_far() + &self.stderr.so_far();
            if let Some((_, rest)) = said.split_once(before) {
                return rest.split_once(after).map(|(found, _)| found.to_owned());
            }
            assert!(self.child.try_wait().expect("a status").is_none(), "it has ended before it said `{before}`: {said}");
            None
        })
    }

    /// Runs to the end; gives what it said on stdout and on stderr.
    pub fn finish(&mut self) -> (ExitStatus, String, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            assert!(begun.elapsed() < LONGEST, "it hangs, and said: {}{}", self.stdout.so_far(), self.stderr.so_far());
            thread::sleep(Duration::from_millis(5));
        };
        (status, self.stdout.all(), self.stderr.all())
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It is over already if the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
