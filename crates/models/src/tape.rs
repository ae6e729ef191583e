//! A recording of what a model was asked and what it said, one exchange a line.

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

/// The largest recording.
const MAX_RECORDING: u64 = 64 << 20;

/// One exchange.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Exchange {
    model: String,
    /// What was said before: what a later request must be equal to. Ids and instructions are no part of it.
    asked: Vec<Value>,
    said: Vec<Piece>,
}

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Piece {
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

impl Piece {
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

/// What a request says, without what differs from run to run.
fn content(messages: &[Arc<Message>]) -> Vec<Value> {
    let said = messages.iter().filter_map(|message| {
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
    said.collect()
}

/// A model that answers from a recording.
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
    /// Opens a recording.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let text =
            read(path).map_err(|error| ModelError::Recording(format!("the recording {} cannot be read: {error}", path.display())))?;
        Self::of(&text, &path.display().to_string())
    }

    /// A recording that is at hand as text.
    ///
    /// # Errors
    /// Where a line is no exchange.
    pub fn of(text: &str, name: &str) -> Result<Self, ModelError> {
        let mut exchanges = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let exchange: Exchange = serde_json::from_str(line).map_err(|error| {
                ModelError::Recording(format!("line {} of the recording {name} is not an exchange: {error}", number + 1))
            })?;
            exchanges.push(exchange);
        }
        let native = exchanges.iter().any(|exchange| exchange.said.iter().any(|piece| matches!(piece, Piece::Call { .. })));
        let info = ModelInfo {
            provider: "replay".into(),
            constrains_output: true,
            calls_natively: native.then_some(true),
            ..ModelInfo::new(exchanges.first().map_or("nothing", |exchange| exchange.model.as_str()))
        };
        Ok(Self { info, name: name.to_owned(), pace: Duration::ZERO, exchanges: Mutex::new(exchanges) })
    }

    /// The same recording, played with this much time between two pieces.
    #[must_use]
    pub fn with_pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// The next answer to this; the last one is given again.
    fn take(&self, asked: &[Value]) -> Option<Vec<Piece>> {
        let mut exchanges = self.exchanges.lock();
        let mut places = exchanges.iter().enumerate().filter(|(_, exchange)| exchange.asked == asked).map(|(place, _)| place);
        let (first, more) = (places.next()?, places.next().is_some());
        Some(if more { exchanges.remove(first).said } else { exchanges[first].said.clone() })
    }

    fn off_tape(&self, asked: &[Value]) -> ModelError {
        let last = asked.last().map(ToString::to_string).unwrap_or_default();
        let last = printable::shorten(&printable::escape_line(&last), 300);
        ModelError::Recording(format!(
            "the recording {} has no answer to this, after {} messages: {last}. Tools may have given other results than when it was made",
            self.name,
            asked.len()
        ))
    }
}

impl LanguageModel for Replay {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let asked = content(&request.messages);
        let pieces = self.take(&asked).ok_or_else(|| self.off_tape(&asked))?;
        Ok(ModelStream::new(Playing { pieces: pieces.into(), pace: self.pace, pause: None }))
    }
}

/// An answer that is played, a piece at a time.
struct Playing {
    pieces: VecDeque<Piece>,
    pace: Duration,
    pause: Option<Pin<Box<Sleep>>>,
}

impl PollDeltas for Playing {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        if !self.pace.is_zero() {
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.pace)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let piece = self.pieces.pop_front();
        let more = piece.is_some();
        if let Some(piece) = piece {
            into.push(piece.delta());
        }
        Poll::Ready(Ok(more))
    }
}

/// A model whose answers are recorded.
#[derive(Debug)]
pub struct Recorder<M> {
    model: M,
    path: PathBuf,
}

impl<M: DynModel> Recorder<M> {
    /// Records what a model says at the end of a file.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn new(model: M, path: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let path = path.into();
        open(&path).map_err(|error| ModelError::Recording(format!("the recording {} cannot be written: {error}", path.display())))?;
        Ok(Self { model, path })
    }
}

impl<M: DynModel> LanguageModel for Recorder<M> {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let exchange = Exchange { model: self.model.info().name.to_string(), asked: content(&request.messages), said: Vec::new() };
        let stream = self.model.ask(request).await?;
        Ok(ModelStream::new(Recording { stream, exchange, path: self.path.clone() }))
    }
}

/// Reads a recording, which is a file of bounded size and no endless device.
fn read(path: &Path) -> std::io::Result<String> {
    let file = fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::Read::take(file, MAX_RECORDING), &mut text)?;
    Ok(text)
}

/// Opens a recording to be gone on with. Only its owner may read what was said.
fn open(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

struct Recording {
    stream: ModelStream,
    exchange: Exchange,
    path: PathBuf,
}

impl Recording {
    fn write(&self) -> std::io::Result<()> {
        let mut line = serde_json::to_string(&self.exchange)?;
        line.push('\n');
        open(&self.path)?.write_all(line.as_bytes())
    }
}

impl PollDeltas for Recording {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        let polled = self.stream.poll_deltas(cx, into);
        if let Poll::Ready(Ok(true)) = polled {
            let had_end = |piece: &Piece| matches!(piece, Piece::End(_));
            self.exchange.said.extend(into.iter().filter_map(Piece::of));
            // Only answers that came to their end are worth playing again.
            if self.exchange.said.last().is_some_and(had_end)
                && let Err(error) = self.write()
            {
                return Poll::Ready(Err(ModelError::Recording(format!(
                    "the recording {} cannot be written: {error}",
                    self.path.display()
                ))));
            }
        }
        polled
    }
}
