//! Records requests to a model and its responses in a file, with one exchange per line, and replays them.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use helve_core::{
    Deltas, DynModel, EndReason, LanguageModel, Message, MessageBody, ModelDelta, ModelError, ModelInfo, ModelRequest, ModelStream, Part,
    PollDeltas, Usage, printable,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Sleep;

/// Maximum size of a recording, in bytes. The rest of a larger file is not read.
const MAX_RECORDING: u64 = 64 << 20;

/// One request and its response. The names of the fields in the file differ for compatibility with older recordings.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Exchange {
    model: String,
    /// The messages of the request, without ids and system prompt. A replayed request must have the same messages.
    #[serde(rename = "asked")]
    request: Vec<Value>,
    #[serde(rename = "said")]
    response: Vec<RecordedDelta>,
}

/// One recorded delta of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedDelta {
    Text(String),
    Reasoning(String),
    Call {
        index: Option<u32>,
        id: Option<String>,
        name: Option<String>,
        #[serde(default)]
        arguments: String,
    },
    Kept(Value),
    Usage(Usage),
    End(EndReason),
}

impl RecordedDelta {
    fn of(delta: ModelDelta<'_>) -> Option<Self> {
        Some(match delta {
            ModelDelta::Text(text) => Self::Text(text.to_owned()),
            ModelDelta::Reasoning(text) => Self::Reasoning(text.to_owned()),
            ModelDelta::Call { index, id, name, arguments } => {
                Self::Call { index, id: id.map(ToOwned::to_owned), name: name.map(ToOwned::to_owned), arguments: arguments.to_owned() }
            }
            ModelDelta::ProviderPart(value) => Self::Kept(value.clone()),
            ModelDelta::Usage(usage) => Self::Usage(usage),
            ModelDelta::End(reason) => Self::End(reason),
            _ => return None,
        })
    }

    fn delta(&self) -> ModelDelta<'_> {
        match self {
            Self::Text(text) => ModelDelta::Text(text),
            Self::Reasoning(text) => ModelDelta::Reasoning(text),
            Self::Call { index, id, name, arguments } => {
                ModelDelta::Call { index: *index, id: id.as_deref(), name: name.as_deref(), arguments }
            }
            Self::Kept(value) => ModelDelta::ProviderPart(value),
            Self::Usage(usage) => ModelDelta::Usage(*usage),
            Self::End(reason) => ModelDelta::End(*reason),
        }
    }
}

/// Returns the content of messages, without ids and other values that differ from run to run.
fn content(messages: &[Arc<Message>]) -> Vec<Value> {
    let content = messages.iter().filter_map(|message| {
        Some(match message.body() {
            MessageBody::User { parts } => {
                let parts = parts.iter().map(|part| match part {
                    Part::Text { text } => json!(text),
                    Part::Image { media_type, data } => json!({"image": media_type, "bytes": data.len()}),
                    _ => Value::Null,
                });
                json!({"user": parts.collect::<Vec<_>>()})
            }
            MessageBody::Assistant { text, calls, .. } => {
                let calls = calls.iter().map(|call| {
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                    json!({"tool": call.tool, "arguments": arguments})
                });
                json!({"assistant": text, "calls": calls.collect::<Vec<_>>()})
            }
            MessageBody::Tool { tool, text, success, .. } => json!({"result": tool, "text": text, "success": success}),
            _ => return None,
        })
    });
    content.collect()
}

/// A model that replays responses from a recording.
pub struct Replay {
    info: ModelInfo,
    name: String,
    pace: Duration,
    exchanges: Mutex<Vec<Exchange>>,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Replay {
    /// Opens the file of a recording.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let text = read(path).map_err(|error| ModelError::Recording(format!("cannot read recording {}: {error}", path.display())))?;
        Self::of(&text, &path.display().to_string())
    }

    /// Parses the text of a recording. Errors show `name` as its file.
    ///
    /// # Errors
    /// Returns an error if a line is not an exchange.
    pub fn of(text: &str, name: &str) -> Result<Self, ModelError> {
        let mut exchanges = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let exchange: Exchange = serde_json::from_str(line)
                .map_err(|error| ModelError::Recording(format!("line {} of recording {name} is not an exchange: {error}", number + 1)))?;
            exchanges.push(exchange);
        }
        let native = exchanges.iter().any(|exchange| exchange.response.iter().any(|delta| matches!(delta, RecordedDelta::Call { .. })));
        let info = ModelInfo {
            provider: "replay".into(),
            constrains_output: true,
            calls_natively: native.then_some(true),
            ..ModelInfo::new(exchanges.first().map_or("nothing", |exchange| exchange.model.as_str()))
        };
        Ok(Self { info, name: name.to_owned(), pace: Duration::ZERO, exchanges: Mutex::new(exchanges) })
    }

    /// Sets the delay between two deltas.
    #[must_use]
    pub fn with_pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Takes the next recorded response to a request. The last one is not removed, so it is replayed again. Returns `None` if the recording
    /// has no such request.
    fn take(&self, request: &[Value]) -> Option<Vec<RecordedDelta>> {
        let mut exchanges = self.exchanges.lock();
        let mut matching = exchanges.iter().enumerate().filter(|(_, exchange)| exchange.request == request).map(|(index, _)| index);
        let (first, more) = (matching.next()?, matching.next().is_some());
        Some(if more { exchanges.remove(first).response } else { exchanges[first].response.clone() })
    }

    /// Returns the error for a request that the recording does not contain.
    fn no_response(&self, request: &[Value]) -> ModelError {
        let last = request.last().map(ToString::to_string).unwrap_or_default();
        let last = printable::shorten(&printable::escape_line(&last), 300);
        ModelError::Recording(format!(
            "recording {} has no response to this request (after {} messages): {last}. The tools may have returned other results than in the recording",
            self.name,
            request.len()
        ))
    }
}

impl LanguageModel for Replay {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let request = content(&request.messages);
        let deltas = self.take(&request).ok_or_else(|| self.no_response(&request))?;
        Ok(ModelStream::new(ReplayStream { deltas: deltas.into(), pace: self.pace, pause: None }))
    }
}

/// The deltas of a replayed response, one at a time.
struct ReplayStream {
    deltas: VecDeque<RecordedDelta>,
    pace: Duration,
    pause: Option<Pin<Box<Sleep>>>,
}

impl PollDeltas for ReplayStream {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        if !self.pace.is_zero() {
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.pace)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let Some(delta) = self.deltas.pop_front() else { return Poll::Ready(Ok(false)) };
        into.push(delta.delta());
        Poll::Ready(Ok(true))
    }
}

/// A model that records its requests and responses in a file.
#[derive(Debug)]
pub struct Recorder<M> {
    model: M,
    path: PathBuf,
}

impl<M: DynModel> Recorder<M> {
    /// Creates a model that appends the exchanges of `model` to the file at `path`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened for writing.
    pub fn new(model: M, path: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let path = path.into();
        open(&path).map_err(|error| unwritable(&path, &error))?;
        Ok(Self { model, path })
    }
}

impl<M: DynModel> LanguageModel for Recorder<M> {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let exchange = Exchange { model: self.model.info().name.to_string(), request: content(&request.messages), response: Vec::new() };
        let stream = self.model.ask(request).await?;
        Ok(ModelStream::new(RecordingStream { stream, exchange, path: self.path.clone() }))
    }
}

/// Reads a recording, up to the maximum size. Fails if `path` is not a regular file, because a device could be endless.
fn read(path: &Path) -> std::io::Result<String> {
    let file = fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::Read::take(file, MAX_RECORDING), &mut text)?;
    Ok(text)
}

/// Opens a recording for appending. On Unix, only the owner can read a new file.
fn open(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns the error for a recording that cannot be written.
fn unwritable(path: &Path, error: &std::io::Error) -> ModelError {
    ModelError::Recording(format!("cannot write recording {}: {error}", path.display()))
}

/// The deltas of a response. Writes the exchange to the recording when the response is complete.
struct RecordingStream {
    stream: ModelStream,
    exchange: Exchange,
    path: PathBuf,
}

impl RecordingStream {
    fn write(&self) -> std::io::Result<()> {
        let mut line = serde_json::to_string(&self.exchange)?;
        line.push('\n');
        open(&self.path)?.write_all(line.as_bytes())
    }
}

impl PollDeltas for RecordingStream {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        let polled = self.stream.poll_deltas(cx, into);
        if let Poll::Ready(Ok(true)) = polled {
            self.exchange.response.extend(into.iter().filter_map(RecordedDelta::of));
            // Only complete responses are worth replaying.
            if let Some(RecordedDelta::End(_)) = self.exchange.response.last()
                && let Err(error) = self.write()
            {
                return Poll::Ready(Err(unwritable(&self.path, &error)));
            }
        }
        polled
    }
}
