//! The server over a pair of pipes, one message a line. One client is at the other end; each of its requests says by itself which era it
//! is of.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use helve_mcp_wire::{CODES, Era, META, Message, NotAMessage, RequestId, RpcError};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::http::misread;
use super::hub::{Hub, Work, error, no_place, settle};
use super::ladder::{self, meta};
use super::listen::{Filter, Listener};
use super::open::Open;
use super::server::Server;
use super::session::{Session, declares, notice};
use super::sessions::farewell;
use super::stream::Out;
use super::{Change, legacy, modern};
use crate::line::{Line, Reader};

/// For how long an answer waits for a client that reads nothing. There is only this client, and it may be held in a debugger.
const PATIENCE: Duration = Duration::from_hours(1);

impl Server {
    /// Serves the one client at the other end of two pipes, until it closes its end, the token fires, or it says nothing but nonsense.
    ///
    /// # Errors
    /// Where the pipes break.
    pub async fn stdio<R, W>(&self, reader: R, writer: W, cancel: CancellationToken) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let options = &self.hub.options;
        let (out, messages) = mpsc::channel(options.queue.max(1));
        let mut writing = tokio::spawn(write(writer, messages));
        let mut pipe = Pipe {
            hub: self.hub.clone(),
            out,
            open: Open::default(),
            session: None,
            tasks: JoinSet::new(),
            stop: self.hub.stopping.child_token(),
            end: self.hub.abort.child_token(),
        };
        let read = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            () = self.hub.stopping.cancelled() => Ok(()),
            read = pipe.read(Reader::new(reader, options.max_line)) => read,
        };
        pipe.finish().await;
        let written = time::timeout(options.grace, &mut writing).await;
        writing.abort();
        read.and(written.map_or(Ok(()), |written| written.unwrap_or(Ok(()))))
    }
}

/// One client, and what is worked on for it.
struct Pipe {
    hub: Arc<Hub>,
    out: mpsc::Sender<Out>,
    open: Open,
    session: Option<Arc<Session>>,
    tasks: JoinSet<()>,
    /// Fires when nothing more is told but answers.
    stop: CancellationToken,
    /// Fires when what still runs is to end.
    end: CancellationToken,
}

impl Pipe {
    async fn read<R: AsyncRead + Unpin>(&mut self, mut lines: Reader<R>) -> io::Result<()> {
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
                Some(Line::Endless) => return Err(io::Error::new(io::ErrorKind::InvalidData, "the client's message has no end")),
                Some(Line::TooLong(..)) => (None, error(CODES.request, "The message is too long")),
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Some(Line::Whole(line)) => match Message::read(&line) {
                    Ok(message) => {
                        self.take(message).await;
                        continue;
                    }
                    Err(problem) => {
                        // A model that wrote an argument twice is no reason to give up on its client.
                        is_garbage = !matches!(problem, NotAMessage::Ambiguous { inside: true, .. });
                        misread(&problem, &line)
                    }
                },
            };
            garbage += usize::from(is_garbage);
            let text = Message::Response { id, result: Err(problem) }.write();
            self.send(Out::Answer { text, code: None }).await;
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the client says nothing but nonsense"))
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                if let Err(problem) = self.request(&id, &method, params).await {
                    self.send(Out::answer(id, Err(problem))).await;
                }
            }
            Message::Notification { method, params } if method == "notifications/cancelled" => self.open.cancel(params.as_ref()),
            Message::Response { id: Some(id), result } => {
                if let Some(session) = &self.session {
                    session.asks.answer(&id, result);
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
            // Some clients ask whether somebody is there before they begin.
            (Era::Legacy, None) if method == "ping" => {
                self.send(Out::answer(id.clone(), Ok(serde_json::json!({})))).await;
                Ok(())
            }
            (Era::Legacy, None) => {
                Err(error(CODES.request, "Send `initialize` first, or say in `_meta` of each request which version it speaks"))
            }
        }
    }

    fn modern(&mut self, id: &RequestId, method: &str, params: Option<Value>) -> Result<(), RpcError> {
        let caller = ladder::climb(method, params.as_ref(), None, &self.hub.mirrored)?;
        let cancel = self.end.child_token();
        if method == "subscriptions/listen" {
            let filter = Filter::read(params.as_ref())?;
            let place = self.hub.listeners.take(Vec::new()).map_err(no_place)?;
            let begun = self.open.begin(id.clone(), cancel.clone());
            let (hub, out, stop) = (self.hub.clone(), self.out.clone(), self.stop.clone());
            let listener = Listener { hub, id: id.clone(), caller, out, cancel, stop, place };
            self.tasks.spawn(async move {
                listener.run(filter).await;
                drop(begun);
            });
            return Ok(());
        }
        let request = modern::incoming(method, params, &caller, Some(self.out.clone()), &cancel);
        let answer = modern::answer(self.hub.clone(), request);
        self.work(id, cancel, answer)
    }

    fn legacy(&mut self, id: &RequestId, method: &str, params: Option<Value>, session: Arc<Session>) -> Result<(), RpcError> {
        let cancel = session.end.child_token();
        let request = legacy::incoming(&session, method, params, Some(self.out.clone()), &cancel);
        let answer = legacy::answer(self.hub.clone(), session, request);
        self.work(id, cancel, answer)
    }

    fn work(
        &mut self,
        id: &RequestId,
        cancel: CancellationToken,
        answer: impl Future<Output = Result<Value, RpcError>> + Send + 'static,
    ) -> Result<(), RpcError> {
        let place = self.hub.requests.take(Vec::new()).map_err(no_place)?;
        let begun = Some(self.open.begin(id.clone(), cancel.clone()));
        let (out, grace) = (self.out.clone(), self.hub.options.grace);
        let work = Work { id: id.clone(), out, cancel, place, begun, patience: PATIENCE, grace };
        self.tasks.spawn(work.run(answer));
        Ok(())
    }

    /// Begins a session. It is there before the next message is read.
    async fn initialize(&mut self, id: &RequestId, params: Option<Value>) -> Result<(), RpcError> {
        let mut begun = None;
        let work = async {
            let (session, result) = legacy::initialize(&self.hub, params, Some(&self.out))?;
            begun = Some(session);
            Ok(result)
        };
        let result = settle(work).await?;
        self.part();
        if let Some(session) = begun.map(Arc::new) {
            let changes = self.hub.backend.changes();
            self.session = Some(session.clone());
            self.tasks.spawn(tell(self.hub.clone(), session, changes, self.out.clone(), self.stop.clone()));
        }
        self.send(Out::answer(id.clone(), Ok(result))).await;
        Ok(())
    }

    /// Ends the session, where there is one.
    fn part(&mut self) {
        if let Some(session) = self.session.take() {
            session.finish();
            farewell(&*self.hub.backend, &session.id);
        }
    }

    async fn send(&self, out: Out) {
        let _ = time::timeout(PATIENCE, self.out.send(out)).await;
    }

    /// What runs has a moment to end by itself; then it is ended.
    async fn finish(mut self) {
        self.stop.cancel();
        let grace = self.hub.options.grace;
        let _ = time::timeout(grace, async { while self.tasks.join_next().await.is_some() {} }).await;
        self.end.cancel();
        self.part();
        let _ = time::timeout(grace, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

/// Which era a request is of.
fn era(method: &str, params: Option<&Value>) -> Era {
    let says = meta(params).is_some_and(|meta| meta.contains_key(META.version));
    let modern = match method {
        "initialize" => says && params.is_some_and(|params| params.get("protocolVersion").is_none()),
        "server/discover" | "subscriptions/listen" => true,
        _ => says,
    };
    if modern { Era::Modern } else { Era::Legacy }
}

/// Tells a client of the older era of changes.
async fn tell(hub: Arc<Hub>, session: Arc<Session>, mut changes: Receiver<Change>, out: mpsc::Sender<Out>, stop: CancellationToken) {
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
        for change in news.into_iter().filter(|change| session.cares(change) && declares(&capabilities, change)) {
            tokio::select! {
                () = stop.cancelled() => return,
                sent = out.send(Out::Note { text: notice(&change), number: None }) => if sent.is_err() { return },
            }
        }
    }
}

/// Writes messages, one a line and one after the other.
async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut messages: mpsc::Receiver<Out>) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        let (Out::Note { text, .. } | Out::Answer { text, .. }) = message else { continue };
        let mut line = text.into_bytes();
        line.push(b'\n');
        writer.write_all(&line).await?;
        writer.flush().await?;
    }
    writer.shutdown().await
}
