//! Runs a program: starts it in a group of its own, feeds it, reads it, stops it, and leaves nothing of it behind.

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
use crate::capture::{self, TooMuch};

/// How long a program may tidy up after it was asked to end; half of the second that a cancelled call has.
const GRACE: Duration = Duration::from_millis(500);
/// How long is read on after the program has ended, for what its children still write.
const AFTERMATH: Duration = Duration::from_millis(200);
/// How long a killed program may take to be gone. It is reaped later if the system is slower.
const REAPED: Duration = Duration::from_millis(250);

/// Everything that is needed to start a program.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) folder: PathBuf,
    /// What it reads; nothing where there is none.
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) max_bytes: u64,
    pub(crate) attempt: Attempt,
}

/// What a program left when it had ended by itself.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// Its end, without secrets.
    pub(crate) stderr: String,
}

/// Why a program did not end by itself.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It never ran.
    NotStarted(io::Error),
    /// The caller gave up, or the time was over.
    Cancelled,
    /// It wrote more than it may.
    TooMuch,
    /// The system does not say what became of it.
    Lost(io::Error),
}

impl From<TooMuch> for Stopped {
    fn from(_: TooMuch) -> Self {
        Self::TooMuch
    }
}

/// Runs a program to its end. When this is over, or dropped, no process of it is left.
pub(crate) async fn run(launch: Launch, cancel: &CancellationToken, redactor: &Redactor) -> Result<Finished, Stopped> {
    let mut process = Process::start(&launch).map_err(Stopped::NotStarted)?;
    let (stdin, stdout, stderr) = (process.child.stdin.take(), process.child.stdout.take(), process.child.stderr.take());
    let (mut written, mut tail) = (Vec::new(), Tail::new(redactor));
    let status = {
        // All three at once: a program may want to write before it has read everything.
        let feed = async {
            if let (Some(mut pipe), Some(input)) = (stdin, &launch.input) {
                // A program need not read what it is given; when it closes the pipe, writing fails and that is fine.
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
    Ok(Finished { status, stdout: written, stderr: tail.finish() })
}

/// A program and its group. The group comes first, because it must be killed while the leader's number is still its own.
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

    /// Waits for the program to end by itself, or ends it.
    async fn watch<P>(&mut self, mut pipes: Pin<&mut Fuse<P>>, cancel: &CancellationToken) -> Result<ExitStatus, Stopped>
    where
        P: Future<Output = Result<(), TooMuch>>,
    {
        let ended = tokio::select! {
            biased;
            ended = self.serve(pipes.as_mut()) => ended,
            () = cancel.cancelled() => Err(Stopped::Cancelled),
        };
        match ended {
            Ok(status) if pipes.is_terminated() => Ok(status),
            // Someone else holds the pipes open; what they still say is read for a moment.
            Ok(status) => tokio::select! {
                biased;
                read = pipes => read.map(|()| status).map_err(Stopped::from),
                () = sleep(AFTERMATH) => Ok(status),
                () = cancel.cancelled() => Err(Stopped::Cancelled),
            },
            Err(Stopped::Cancelled) => {
                let until = Instant::now() + GRACE;
                self.group.ask_to_end();
                // The leader may be a shell that ends at once while what it started still tidies up.
                let _ = tokio::time::timeout_at(until, self.serve(pipes)).await;
                self.group.emptied(until).await;
                Err(Stopped::Cancelled)
            }
            Err(stopped) => Err(stopped),
        }
    }

    /// Waits for the program to end while its pipes are served.
    async fn serve<P>(&mut self, pipes: Pin<&mut Fuse<P>>) -> Result<ExitStatus, Stopped>
    where
        P: Future<Output = Result<(), TooMuch>>,
    {
        tokio::select! {
            biased;
            status = self.wait() => status.map_err(Stopped::Lost),
            Err(TooMuch) = pipes => Err(Stopped::TooMuch),
        }
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group.set_leader_reaped();
        Ok(status)
    }

    /// Kills and reaps whatever is left.
    async fn end(&mut self) {
        self.group.end().await;
        if !self.group.leader_was_reaped() {
            let _ = timeout(REAPED, self.wait()).await;
        }
    }
}
