//! Runs a program in its own process group: feeds it, reads it, stops it, and kills all its processes.

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

/// Time between SIGTERM and SIGKILL; half of the second that a cancelled call has.
const GRACE: Duration = Duration::from_millis(500);
/// How long to read on after the program exited, for output of its children.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How long to wait for a killed program. If the system is slower, it is reaped later.
const REAP_TIMEOUT: Duration = Duration::from_millis(250);

/// Everything needed to start a program.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) folder: PathBuf,
    /// Standard input; `None` for `/dev/null`.
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
    /// It could not be started.
    NotStarted(io::Error),
    /// The call was cancelled or timed out.
    Cancelled,
    /// It exceeded its output limit.
    OutputTooLarge,
    /// Its exit status is unknown.
    Lost(io::Error),
}

impl From<OutputTooLarge> for ProgramError {
    fn from(_: OutputTooLarge) -> Self {
        Self::OutputTooLarge
    }
}

/// Runs a program to its end. When this future completes or is dropped, none of its processes is left.
pub(crate) async fn run(launch: Launch, cancel: &CancellationToken, redactor: &Redactor) -> Result<ProgramOutput, ProgramError> {
    let mut process = Process::start(&launch).map_err(ProgramError::NotStarted)?;
    let (stdin, stdout, stderr) = (process.child.stdin.take(), process.child.stdout.take(), process.child.stderr.take());
    let (mut written, mut tail) = (Vec::new(), Tail::new(redactor));
    let status = {
        // All three concurrently: a program may write before it has read all its input.
        let feed = async {
            if let (Some(mut pipe), Some(input)) = (stdin, &launch.input) {
                // A program may ignore its input. If it closes the pipe, the write fails, which is fine.
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

/// A program and its process group. `group` is dropped first: it must be killed before the leader's pid can be reused.
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

    /// Waits for the program to exit, or stops it.
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
            // A child still holds the pipes open; read on for a moment.
            Ok(status) => tokio::select! {
                biased;
                read = pipes => read.map(|()| status).map_err(ProgramError::from),
                () = sleep(DRAIN_TIMEOUT) => Ok(status),
                () = cancel.cancelled() => Err(ProgramError::Cancelled),
            },
            Err(ProgramError::Cancelled) => {
                let until = Instant::now() + GRACE;
                self.group.ask_to_end();
                // The leader may be a shell that exits at once while its children still clean up.
                let _ = tokio::time::timeout_at(until, self.serve(pipes)).await;
                self.group.emptied(until).await;
                Err(ProgramError::Cancelled)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the program to exit while its pipes are read and written.
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

    /// Kills and reaps what is left.
    async fn end(&mut self) {
        self.group.end().await;
        if !self.group.leader_was_reaped() {
            let _ = timeout(REAP_TIMEOUT, self.wait()).await;
        }
    }
}
