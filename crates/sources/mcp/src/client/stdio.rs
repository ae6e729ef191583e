//! Runs a server as a program that reads and writes one message per line on stdin and stdout. Kills all of its processes when the
//! connection ends.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use helve_mcp_wire::Message;
use helve_process::{Group, Tail, program, read_tail};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::{RequestError, excerpt};
use super::launch::{Launch, LaunchId};
use super::limits::MAX_MESSAGE;
use super::peer::{Outbox, Peer};
use crate::line_reader::{Line, LineReader, find_id, is_response};

/// Maximum number of consecutive invalid lines. A program that writes more is not considered a server.
const MAX_GARBAGE: usize = 100;
/// Capacity of the queue of messages to the program.
const OUTBOX: usize = 256;
/// Grace period for each step of stopping the program: after its stdin is closed, and after `SIGTERM`.
const GRACE: Duration = Duration::from_millis(500);

/// A running server program. Dropping the value stops the program.
pub(crate) struct Pipe {
    outbox: Arc<LineQueue>,
    stop: CancellationToken,
}

struct LineQueue(mpsc::Sender<String>);

impl Outbox for LineQueue {
    fn put(&self, message: Message) {
        if self.0.try_send(message.write()).is_err() {
            tracing::debug!("MCP server does not read; a message to it was dropped");
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Pipe {
    /// Starts the program, and delivers its messages to `peer`.
    pub(crate) async fn start(launch: &Launch, peer: &Arc<Peer>) -> Result<Self, RequestError> {
        let name = launch.command.first().map(String::as_str).unwrap_or_default();
        let program = program::find(name, &launch.project).map_err(|error| RequestError::NotStarted(error.message().to_owned()))?;
        let start = LaunchId::new();
        // Checks the files immediately before the start, to leave them little time to change in between.
        launch.scripts.check().await.map_err(|error| RequestError::ScriptChanged(error.message().to_owned()))?;
        let refused = |error| RequestError::NotStarted(program::not_started(name, error).message().to_owned());
        let mut child = Command::new(program)
            .args(&launch.command[1..])
            .env_clear()
            .envs(start.variables(launch))
            .current_dir(&launch.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(refused)?;
        let group = Group::of(&child, start.marker()).map_err(refused)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(RequestError::NotStarted(format!("the program `{name}` has no pipes")));
        };
        let (sender, receiver) = mpsc::channel(OUTBOX);
        let outbox = Arc::new(LineQueue(sender));
        let stop = CancellationToken::new();
        let (over, is_over) = oneshot::channel();
        tokio::spawn(write(stdin, receiver, stop.clone()));
        let stdout = tokio::spawn(read(stdout, peer.clone(), outbox.clone(), over));
        let stderr = tokio::spawn(listen(stderr, Tail::new(&launch.redactor)));
        let process = ServerProcess { group, child, status: None };
        tokio::spawn(process.watch(stop.clone(), is_over, (stdout, stderr), peer.clone()));
        Ok(Self { outbox, stop })
    }

    /// Sends a message. Waits while the queue is full because the program reads slowly.
    pub(crate) async fn send(&self, message: &Message) -> Result<(), RequestError> {
        let sent = self.outbox.0.send(message.write()).await;
        sent.map_err(|_| RequestError::Unreachable("the program has ended".to_owned()))
    }

    pub(crate) fn outbox(&self) -> Arc<dyn Outbox> {
        self.outbox.clone()
    }
}

/// Writes lines to the program until `stop` is cancelled, then closes the program's stdin.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>, stop: CancellationToken) {
    loop {
        let mut line = tokio::select! {
            biased;
            line = lines.recv() => match line { Some(line) => line, None => return },
            () = stop.cancelled() => return,
        };
        line.push('\n');
        let written = tokio::select! {
            written = stdin.write_all(line.as_bytes()) => written,
            // The incomplete line does not matter, because the program is about to be stopped.
            () = stop.cancelled() => return,
        };
        if written.is_err() {
            return;
        }
    }
}

/// Reads messages until the program closes its stdout, or until it has written too many invalid lines. Sends the reason to `over`.
async fn read(stdout: ChildStdout, peer: Arc<Peer>, outbox: Arc<LineQueue>, over: oneshot::Sender<Option<String>>) {
    let outbox: Arc<dyn Outbox> = outbox;
    let mut reader = LineReader::new(stdout, MAX_MESSAGE);
    let mut garbage = 0;
    let why = loop {
        let error = match reader.next().await {
            None => break None,
            Some(Line::Whole(line)) => match Message::read(&line) {
                Ok(message) => {
                    garbage = 0;
                    peer.deliver(message, None, &outbox);
                    continue;
                }
                Err(error) => {
                    let beginning = &line[..line.len().min(400)];
                    let id = find_id(beginning, &line[line.len().saturating_sub(400)..]);
                    // An incomplete response at the end only means that the program has ended.
                    if let Some(id) = id.filter(|_| is_response(beginning) && !reader.at_end()) {
                        peer.fail(id, RequestError::Protocol(error.to_string()));
                    }
                    format!("{error}: {}", excerpt(&String::from_utf8_lossy(beginning)))
                }
            },
            Some(Line::Endless) => break Some("it wrote a line that does not end".to_owned()),
            Some(Line::TooLong(beginning, end)) => {
                if let Some(id) = find_id(&beginning, &end) {
                    peer.fail(id, RequestError::TooLarge(MAX_MESSAGE));
                }
                format!("a message is longer than {MAX_MESSAGE} bytes")
            }
        };
        tracing::debug!(error, "an invalid line of an MCP server was dropped");
        garbage += 1;
        if garbage > MAX_GARBAGE {
            break Some(format!("it wrote {MAX_GARBAGE} invalid lines; the last: {error}"));
        }
    };
    let _ = over.send(why);
}

/// Reads the program's stderr, and returns the end of it.
async fn listen(stderr: ChildStderr, mut tail: Tail) -> String {
    read_tail(stderr, &mut tail).await;
    tail.finish()
}

/// The program of a server, and its process group. `group` is the first field, because it must be dropped, and so killed, before the PID
/// of the leader can be reused.
struct ServerProcess {
    group: Group,
    child: Child,
    status: Option<ExitStatus>,
}

impl ServerProcess {
    /// Waits until the program ends or `stop` is cancelled, kills the process group, and ends the connection with the reason.
    async fn watch(
        mut self,
        stop: CancellationToken,
        mut is_over: oneshot::Receiver<Option<String>>,
        (stdout, mut stderr): (JoinHandle<()>, JoinHandle<String>),
        peer: Arc<Peer>,
    ) {
        let mut why = None;
        tokio::select! {
            () = self.wait() => {
                // Reads the last output of the program.
                if let Ok(Ok(reason)) = timeout(GRACE, &mut is_over).await {
                    why = reason;
                }
            }
            reason = &mut is_over => {
                why = reason.ok().flatten();
                if why.is_none() && timeout(GRACE, self.wait()).await.is_err() {
                    why = Some("it closed its output".to_owned());
                }
            }
            () = stop.cancelled() => {}
        }
        stop.cancel();
        self.end().await;
        let said = timeout(GRACE, &mut stderr).await.ok().and_then(Result::ok).unwrap_or_default();
        // A process that left the group may keep the pipes open forever.
        stdout.abort();
        stderr.abort();
        let why = why.unwrap_or_else(|| match self.status {
            Some(status) if !status.success() => format!("its program ended with {status}"),
            _ => "its program has ended".to_owned(),
        });
        let said = excerpt(&said);
        peer.end(&RequestError::Disconnected(if said.is_empty() { why } else { format!("{why}; stderr: {said}") }));
    }

    async fn wait(&mut self) {
        if let Ok(status) = self.child.wait().await {
            self.status = Some(status);
        }
        self.group.set_leader_reaped();
    }

    /// Waits for the program to end, then sends `SIGTERM`, then kills the process group.
    async fn end(&mut self) {
        if !self.group.leader_was_reaped() && timeout(GRACE, self.wait()).await.is_err() {
            self.group.ask_to_end();
            let _ = timeout(GRACE, self.wait()).await;
        }
        self.group.end().await;
        if !self.group.leader_was_reaped() {
            let _ = timeout(GRACE, self.wait()).await;
        }
    }
}
