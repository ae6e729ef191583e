//! A command tool: runs one process for each call.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynTool, Output, Redactor, ToolCall, ToolError, ToolSpec};
use helve_process::{Environment, Scripts, program};

use crate::argv::Argv;
use crate::attempt::Attempt;
use crate::definition::OutputFormat;
use crate::process::{self, Launch, ProgramError, ProgramOutput};
use crate::result;

/// Size in bytes from which output is parsed on a blocking thread, so that it does not delay other calls.
const LARGE: usize = 256 << 10;

/// A command tool whose definition was checked.
pub(crate) struct CommandTool {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) argv: Argv,
    pub(crate) environment: Environment,
    /// The project folder, which may contain the program.
    pub(crate) project: PathBuf,
    /// The working directory of the program.
    pub(crate) folder: PathBuf,
    /// Snapshot of the scripts at the time of the review.
    pub(crate) scripts: Scripts,
    pub(crate) reads_json: bool,
    pub(crate) format: OutputFormat,
    pub(crate) max_bytes: u64,
    pub(crate) redactor: Redactor,
}

impl DynTool for CommandTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            if cx.is_cancelled() {
                return Err(ToolError::cancelled());
            }
            let launch = self.launch(call)?;
            // Check right before the start, so that the scripts have no time to change.
            self.scripts.check().await?;
            match process::run(launch, cx.cancellation(), &self.redactor).await {
                Ok(finished) => self.read(finished).await,
                Err(ProgramError::Cancelled) => Err(ToolError::cancelled()),
                Err(ProgramError::OutputTooLarge) => Err(ToolError::failed(format!(
                    "the program was stopped: output limit of {} bytes exceeded (max_bytes)",
                    self.max_bytes
                ))),
                Err(ProgramError::NotStarted(error)) => Err(program::not_started(self.argv.program(), error)),
                Err(ProgramError::Lost(error)) => Err(ToolError::failed("the program ended with an unknown exit status").caused_by(error)),
            }
        })
    }
}

impl CommandTool {
    async fn read(&self, finished: ProgramOutput) -> Result<Output, ToolError> {
        if finished.stdout.len() < LARGE {
            return result::read(&finished, self.format, &self.redactor);
        }
        let (format, redactor) = (self.format, self.redactor.clone());
        let reading = tokio::task::spawn_blocking(move || result::read(&finished, format, &redactor));
        reading.await.unwrap_or_else(|error| Err(ToolError::failed("cannot parse the program's output").caused_by(error)))
    }

    fn launch(&self, call: &ToolCall) -> Result<Launch, ToolError> {
        let attempt = Attempt::of(call.id);
        Ok(Launch {
            arguments: self.argv.fill(&call.arguments)?,
            program: program::find(self.argv.program(), &self.project)?,
            environment: attempt.variables(&self.environment),
            folder: self.folder.clone(),
            input: self.reads_json.then(|| format!("{}\n", call.arguments).into_bytes()),
            max_bytes: self.max_bytes,
            attempt,
        })
    }
}
