//! Serves one client over stdin and stdout, with one message per line. Each request determines its own era.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use helve_mcp_wire::{CODES, Change, Era, Message, MessageError, Meta, RequestId, RpcError};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::handle::Server;
use super::http::misread;
use super::hub::{Hub, RunningRequest, no_slot, settle};
use super::modern_checks;
use super::open_requests::OpenRequests;
use super::response::OutgoingMessage;
use super::session::Session;
use super::session_table::end_session;
use super::subscriptions::{ChangeListener, Filter};
use super::{legacy, modern};
use crate::line_reader::{Line, LineReader};

/// Maximum time that a response waits for a client that does not read. It is long because the only client may be paused in a debugger.
const READ_TIMEOUT: Duration = Duration::from_hours(1);

impl Server {
    /// Serves one client until the client closes its end, `cancel` is cancelled, or the client has sent too many invalid lines.
    ///
    /// # Errors
    /// Returns an error if writing fails, or if the client has sent too many invalid lines.
    pub async fn stdio<R, W>(&self, reader: R, writer: W, cancel: CancellationToken) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let options = &self.hub.options;
        let (out, messages) = mpsc::channel(options.queue.max(1));
        let mut writing = tokio::spawn(write(writer, messages));
        let mut client = StdioClient {
            hub: self.hub.clone(),
            out,
            open: OpenRequests::default(),
            session: None,
            tasks: JoinSet::new(),
            stop: self.hub.stopping.child_token(),
            end: self.hub.abort.child_token(),
        };
        let read = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            () = self.hub.stopping.cancelled() => Ok(()),
            read = client.read(LineReader::new(reader, options.max_line)) => read,
        };
        client.finish().await;
        let written = time::timeout(options.grace, &mut writing).await;
        writing.abort();
        read.and(written.map_or(Ok(()), |written| written.unwrap_or(Ok(()))))
    }
}

/// The client over stdio, and its running requests.
struct StdioClient {
    hub: Arc<Hub>,
    out: mpsc::Sender<OutgoingMessage>,
    open: OpenRequests,
    session: Option<Arc<Session>>,
    tasks: JoinSet<()>,
    /// The token that is cancelled when the server may send only responses.
    stop: CancellationToken,
    /// The token that is cancelled when running requests must end.
    end: CancellationToken,
}

impl StdioClient {
    async fn read<R: AsyncRead + Unpin>(&mut self, mut lines: LineReader<R>) -> io::Result<()> {
        let mut garbage = 0;
        while garbage < self.hub.options.max_garbage {
            let line = tokio::select! {
                () = self.out.closed() => return Ok(()),
                line = lines.next() => line,
            };
            while self.tasks.try_join_next().is_some() {}
            let mut is_garbage = true;
            let (id, problem) = match line {
                None => return Ok(()),
                Some(Line::Endless) => return Err(io::Error::new(io::ErrorKind::InvalidData, "the client sent an endless line")),
                Some(Line::TooLong(..)) => (None, RpcError::new(CODES.request, "The message is too long")),
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Some(Line::Whole(line)) => match Message::read(&line) {
                    Ok(message) => {
                        self.take(message).await;
                        continue;
                    }
                    Err(problem) => {
                        // Does not count a message in which only an argument occurs twice: the model may have written it.
                        is_garbage = !matches!(problem, MessageError::Ambiguous { inside: true, .. });
                        misread(&problem, &line)
                    }
                },
            };
            garbage += usize::from(is_garbage);
            let text = Message::Response { id, result: Err(problem) }.write();
            self.send(OutgoingMessage::Response { text, code: None }).await;
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the client sent too many invalid lines"))
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                if let Err(problem) = self.request(&id, &method, params).await {
                    self.send(OutgoingMessage::response(id, Err(problem))).await;
                }
            }
            Message::Notification { method, params } if method == "notifications/cancelled" => self.open.cancel(params.as_ref()),
            Message::Response { id: Some(id), result } => {
                if let Some(session) = &self.session {
                    session.client_requests.respond(&id, result);
                }
            }
            Message::Notification { .. } | Message::Response { .. } => {}
        }
    }

    async fn request(&mut self, id: &RequestId, method: &str, params: Option<Value>) -> Result<(), RpcError> {
        match (era(method, params.as_ref()), &self.session) {
            (Era::Modern, _) => self.modern(id, method, params),
            (Era::Legacy, _) if method == "initialize" => self.initialize(id, params).await,
            (Era::Legacy, Some(session)) => {
                let session = session.clone();
                self.legacy(id, method, params, session)
            }
            // Some clients send `ping` before the handshake.
            (Era::Legacy, None) if method == "ping" => {
                self.send(OutgoingMessage::response(id.clone(), Ok(serde_json::json!({})))).await;
                Ok(())
            }
            (Era::Legacy, None) => {
                Err(RpcError::new(CODES.request, "Send `initialize` first, or state the protocol version in `_meta` of each request"))
            }
        }
    }

    fn modern(&mut self, id: &RequestId, method: &str, params: Option<Value>) -> Result<(), RpcError> {
        let caller = modern_checks::check(method, params.as_ref(), None, &self.hub.header_params)?;
        let cancel = self.end.child_token();
        if method == "subscriptions/listen" {
            let filter = Filter::read(params.as_ref())?;
            let slot = self.hub.listeners.take(Vec::new()).map_err(no_slot)?;
            let open = self.open.begin(id.clone(), cancel.clone());
            let (hub, out, stop) = (self.hub.clone(), self.out.clone(), self.stop.clone());
            let listener = ChangeListener { hub, id: id.clone(), caller, out, cancel, stop, slot };
            self.tasks.spawn(async move {
                listener.run(filter).await;
                drop(open);
            });
            return Ok(());
        }
        let request = modern::incoming(method, params, &caller, Some(self.out.clone()), &cancel);
        let response = modern::respond(self.hub.clone(), request);
        self.work(id, cancel, response)
    }

    fn legacy(&mut self, id: &RequestId, method: &str, params: Option<Value>, session: Arc<Session>) -> Result<(), RpcError> {
        let cancel = session.end.child_token();
        let request = legacy::incoming(&session, method, params, Some(self.out.clone()), &cancel);
        let response = legacy::respond(self.hub.clone(), session, request);
        self.work(id, cancel, response)
    }

    fn work(
        &mut self,
        id: &RequestId,
        cancel: CancellationToken,
        response: impl Future<Output = Result<Value, RpcError>> + Send + 'static,
    ) -> Result<(), RpcError> {
        let slot = self.hub.requests.take(Vec::new()).map_err(no_slot)?;
        let open = Some(self.open.begin(id.clone(), cancel.clone()));
        let (out, grace) = (self.out.clone(), self.hub.options.grace);
        let work = RunningRequest { id: id.clone(), out, cancel, slot, open, patience: READ_TIMEOUT, grace };
        self.tasks.spawn(work.run(response));
        Ok(())
    }

    /// Creates a session, before the next message is read.
    async fn initialize(&mut self, id: &RequestId, params: Option<Value>) -> Result<(), RpcError> {
        let mut started = None;
        let work = async {
            let (session, result) = legacy::initialize(&self.hub, params, Some(&self.out))?;
            started = Some(session);
            Ok(result)
        };
        let result = settle(work).await?;
        self.end_session();
        if let Some(session) = started.map(Arc::new) {
            let changes = self.hub.backend.changes();
            self.session = Some(session.clone());
            self.tasks.spawn(forward_changes(self.hub.clone(), session, changes, self.out.clone(), self.stop.clone()));
        }
        self.send(OutgoingMessage::response(id.clone(), Ok(result))).await;
        Ok(())
    }

    /// Ends the session, if there is one.
    fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            session.finish();
            end_session(&*self.hub.backend, &session.id);
        }
    }

    async fn send(&self, out: OutgoingMessage) {
        let _ = time::timeout(READ_TIMEOUT, self.out.send(out)).await;
    }

    /// Waits for running requests during the grace period, then cancels them.
    async fn finish(mut self) {
        self.stop.cancel();
        let grace = self.hub.options.grace;
        let _ = time::timeout(grace, async { while self.tasks.join_next().await.is_some() {} }).await;
        self.end.cancel();
        self.end_session();
        let _ = time::timeout(grace, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

/// Returns the era of a request.
fn era(method: &str, params: Option<&Value>) -> Era {
    let says = Meta::of(params).is_some_and(Meta::has_version);
    let modern = match method {
        "initialize" => says && params.is_some_and(|params| params.get("protocolVersion").is_none()),
        "server/discover" | "subscriptions/listen" => true,
        _ => says,
    };
    if modern { Era::Modern } else { Era::Legacy }
}

/// Notifies a legacy client of changes until its session ends.
async fn forward_changes(
    hub: Arc<Hub>,
    session: Arc<Session>,
    mut changes: Receiver<Change>,
    out: mpsc::Sender<OutgoingMessage>,
    stop: CancellationToken,
) {
    loop {
        let news = tokio::select! {
            () = stop.cancelled() => return,
            () = session.end.cancelled() => return,
            change = changes.recv() => match change {
                Ok(change) => vec![change],
                Err(RecvError::Lagged(_)) => session.all_changes(),
                Err(RecvError::Closed) => return,
            },
        };
        let capabilities = hub.backend.capabilities(Era::Legacy);
        for change in news.into_iter().filter(|change| session.cares(change) && change.is_declared(&capabilities)) {
            tokio::select! {
                () = stop.cancelled() => return,
                sent = out.send(OutgoingMessage::Notification { text: change.write(), number: None }) => if sent.is_err() { return },
            }
        }
    }
}

/// Writes messages, one per line.
async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut messages: mpsc::Receiver<OutgoingMessage>) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        let (OutgoingMessage::Notification { text, .. } | OutgoingMessage::Response { text, .. }) = message else { continue };
        let mut line = text.into_bytes();
        line.push(b'\n');
        writer.write_all(&line).await?;
        writer.flush().await?;
    }
    writer.shutdown().await
}
