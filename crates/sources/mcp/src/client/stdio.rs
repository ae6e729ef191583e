//! A server as a program: one message per line on its stdin and stdout. No process is left when the connection ends.

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

/// Number of invalid lines in a row after which the program is not considered a server.
const MAX_GARBAGE: usize = 100;
/// How many messages wait for a program that does not read.
const OUTBOX: usize = 256;
/// Grace period after the program's stdin is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);

/// A running server. Dropping it stops the program.
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
    /// Starts the program.
    pub(crate) async fn start(launch: &Launch, peer: &Arc<Peer>) -> Result<Self, RequestError> {
        let name = launch.command.first().map(String::as_str).unwrap_or_default();
        let program = program::find(name, &launch.project).map_err(|error| RequestError::NotStarted(error.message().to_owned()))?;
        let start = LaunchId::new();
        // Checked right before the start, so that the files cannot change in between.
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

    /// Sends a message. Waits while the program is slow to read.
    pub(crate) async fn send(&self, message: &Message) -> Result<(), RequestError> {
        let sent = self.outbox.0.send(message.write()).await;
        sent.map_err(|_| RequestError::Unreachable("the program has ended".to_owned()))
    }

    pub(crate) fn outbox(&self) -> Arc<dyn Outbox> {
        self.outbox.clone()
    }
}

/// Writes until it is stopped, then closes the program's stdin.
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
            // A cut line is useless, and the program is about to be stopped.
            () = stop.cancelled() => return,
        };
        if written.is_err() {
            return;
        }
    }
}

/// Reads until the end, or until it is clear that the program is not a server. Reports why it stopped.
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
                    // A response that is cut off only means that the program has ended.
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

/// Keeps the end of the program's stderr.
async fn listen(stderr: ChildStderr, mut tail: Tail) -> String {
    read_tail(stderr, &mut tail).await;
    tail.finish()
}

/// A program and its process group. The group comes first, because it must be killed while the leader's PID is still its own.
struct ServerProcess {
    group: Group,
    child: Child,
    status: Option<ExitStatus>,
}

impl ServerProcess {
    /// Watches the program until it ends, and ends the connection with the reason.
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
                // Its last output is still read.
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
        // A process that escaped may keep the pipes open forever.
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

    /// Lets it end by itself, then sends SIGTERM, then kills the group.
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
