//! Runs a program in its own process group: writes its input, reads its output, stops it, and kills all its processes.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Fuse, FusedFuture};
use helve_core::Redactor;
use helve_process::{Group, Tail, read_tail};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::attempt::Attempt;
use crate::capture::{self, OutputTooLarge};

/// Time between SIGTERM and SIGKILL: half of the second in which a cancelled call must end.
const GRACE: Duration = Duration::from_millis(500);
/// How long to keep reading output after the program exited, because its children may still write.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How long to wait for a killed program to exit. If it takes longer, the program is reaped later.
const REAP_TIMEOUT: Duration = Duration::from_millis(250);

/// The parameters for starting a program.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) folder: PathBuf,
    /// The bytes for standard input; `None` for `/dev/null`.
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) max_bytes: u64,
    pub(crate) attempt: Attempt,
}

/// The output of a program that exited by itself.
pub(crate) struct ProgramOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// The end of standard error, redacted.
    pub(crate) stderr: String,
}

/// Why a program did not exit by itself.
#[derive(Debug)]
pub(crate) enum ProgramError {
    /// The program could not be started.
    NotStarted(io::Error),
    /// The call was cancelled or timed out.
    Cancelled,
    /// The program exceeded its output limit.
    OutputTooLarge,
    /// Waiting for the program failed, so its exit status is unknown.
    Lost(io::Error),
}

impl From<OutputTooLarge> for ProgramError {
    fn from(_: OutputTooLarge) -> Self {
        Self::OutputTooLarge
    }
}

/// Runs a program to its end. When the future completes or is dropped, all processes of the program are killed.
pub(crate) async fn run(launch: Launch, cancel: &CancellationToken, redactor: &Redactor) -> Result<ProgramOutput, ProgramError> {
    let mut process = Process::start(&launch).map_err(ProgramError::NotStarted)?;
    let (stdin, stdout, stderr) = (process.child.stdin.take(), process.child.stdout.take(), process.child.stderr.take());
    let (mut written, mut tail) = (Vec::new(), Tail::new(redactor));
    let status = {
        // Write and read concurrently: a program may write before it has read all its input.
        let feed = async {
            if let (Some(mut pipe), Some(input)) = (stdin, &launch.input) {
                // Ignore an error: a program may close standard input without reading it.
                let _ = pipe.write_all(input).await;
            }
            Ok(())
        };
        let read = async {
            let Some(pipe) = stdout else { return Ok(()) };
            capture::read_all(pipe, &mut written, launch.max_bytes).await
        };
        let listen = async {
            let Some(pipe) = stderr else { return Ok(()) };
            read_tail(pipe, &mut tail).await;
            Ok(())
        };
        let pipes = pin!(async { tokio::try_join!(feed, read, listen).map(drop) }.fuse());
        let status = process.watch(pipes, cancel).await;
        process.end().await;
        status?
    };
    Ok(ProgramOutput { status, stdout: written, stderr: tail.finish() })
}

/// A program and its process group. `group` must be dropped first, so that the group is killed before the leader's PID can be reused.
struct Process {
    group: Group,
    child: Child,
}

impl Process {
    fn start(launch: &Launch) -> io::Result<Self> {
        let child = Command::new(&launch.program)
            .args(&launch.arguments)
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&launch.folder)
            .stdin(if launch.input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { group: Group::of(&child, launch.attempt.marker())?, child })
    }

    /// Waits until the program exits. Stops the program if the call is cancelled.
    async fn watch<P>(&mut self, mut pipes: Pin<&mut Fuse<P>>, cancel: &CancellationToken) -> Result<ExitStatus, ProgramError>
    where
        P: Future<Output = Result<(), OutputTooLarge>>,
    {
        let ended = tokio::select! {
            biased;
            ended = self.serve(pipes.as_mut()) => ended,
            () = cancel.cancelled() => Err(ProgramError::Cancelled),
        };
        match ended {
            Ok(status) if pipes.is_terminated() => Ok(status),
            // A child still has the pipes open: keep reading for a moment.
            Ok(status) => tokio::select! {
                biased;
                read = pipes => read.map(|()| status).map_err(ProgramError::from),
                () = sleep(DRAIN_TIMEOUT) => Ok(status),
                () = cancel.cancelled() => Err(ProgramError::Cancelled),
            },
            Err(ProgramError::Cancelled) => {
                let until = Instant::now() + GRACE;
                self.group.ask_to_end();
                // Also wait for the group: the leader may be a shell that exits at once, while its children still clean up.
                let _ = tokio::time::timeout_at(until, self.serve(pipes)).await;
                self.group.emptied(until).await;
                Err(ProgramError::Cancelled)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until the program exits, and reads and writes its pipes in the meantime.
    async fn serve<P>(&mut self, pipes: Pin<&mut Fuse<P>>) -> Result<ExitStatus, ProgramError>
    where
        P: Future<Output = Result<(), OutputTooLarge>>,
    {
        tokio::select! {
            biased;
            status = self.wait() => status.map_err(ProgramError::Lost),
            Err(OutputTooLarge) = pipes => Err(ProgramError::OutputTooLarge),
        }
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group.set_leader_reaped();
        Ok(status)
    }

    /// Kills and reaps all remaining processes.
    async fn end(&mut self) {
        self.group.end().await;
        if !self.group.leader_was_reaped() {
            let _ = timeout(REAP_TIMEOUT, self.wait()).await;
        }
    }
}
