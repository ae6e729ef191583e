//! A command as a tool: a call becomes a process, and the process a result.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, DynTool, Output, Redactor, ToolCall, ToolError, ToolSpec};
use helve_process::{Environment, Scripts, program};

use crate::argv::Argv;
use crate::attempt::Attempt;
use crate::definition::OutputFormat;
use crate::process::{self, Finished, Launch, Stopped};
use crate::result;

/// Reading an output of this size takes so long that other calls would notice.
const LARGE: usize = 256 << 10;

/// A command whose definition was checked.
pub(crate) struct CommandTool {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) argv: Argv,
    pub(crate) environment: Environment,
    /// The project's folder, from which the program is found.
    pub(crate) project: PathBuf,
    /// The folder it runs in.
    pub(crate) folder: PathBuf,
    /// What its program was when a person could look at it.
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
            // The last thing before the start: what comes between could change them.
            self.scripts.check().await?;
            match process::run(launch, cx.cancellation(), &self.redactor).await {
                Ok(finished) => self.read(finished).await,
                Err(Stopped::Cancelled) => Err(ToolError::cancelled()),
                Err(Stopped::TooMuch) => {
                    Err(ToolError::failed(format!("the program wrote more than {} bytes and was stopped", self.max_bytes)))
                }
                Err(Stopped::NotStarted(error)) => Err(program::not_started(self.argv.program(), error)),
                Err(Stopped::Lost(error)) => Err(ToolError::failed("it is not known how the program ended").caused_by(error)),
            }
        })
    }
}

impl CommandTool {
    async fn read(&self, finished: Finished) -> Result<Output, ToolError> {
        if finished.stdout.len() < LARGE {
            return result::read(&finished, self.format, &self.redactor);
        }
        let (format, redactor) = (self.format, self.redactor.clone());
        let reading = tokio::task::spawn_blocking(move || result::read(&finished, format, &redactor));
        reading.await.unwrap_or_else(|error| Err(ToolError::failed("the program's output could not be read").caused_by(error)))
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
