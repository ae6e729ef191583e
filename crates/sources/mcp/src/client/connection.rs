//! One connection to a server, in one era: how it begins, and requests on it.

use std::sync::Arc;
use std::time::Duration;

use helve_core::Digest;
use helve_mcp_wire::{CODES, Era, Heard, META, Message, Probe, RequestId, Verdict};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::http::{Endpoint, Site};
use super::http_sse::OldEndpoint;
use super::launch::Launch;
use super::peer::{Peer, Waiting};
use super::stdio::Pipe;
use super::trouble::Trouble;
use crate::caller::BackChannel;
use crate::limits::{GREETING, MAX_INSTRUCTIONS, PROBE};
use crate::serve::Change;

/// Where a server is.
#[derive(Clone)]
pub(crate) enum Place {
    /// A program on this machine.
    Command(Arc<Launch>),
    /// An address.
    Url(Arc<Site>),
}

/// Who asks, and what they can do.
#[derive(Debug, Clone)]
pub(crate) struct Hello {
    /// The object `clientInfo`.
    pub(crate) client: Arc<Value>,
    /// The object `clientCapabilities`.
    pub(crate) capabilities: Arc<Value>,
}

impl Hello {
    /// Helve itself.
    pub(crate) fn helve(capabilities: Value) -> Self {
        let client = json!({"name": "helve", "version": env!("CARGO_PKG_VERSION")});
        Self { client: Arc::new(client), capabilities: Arc::new(capabilities) }
    }
}

/// What a server says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: Value,
}

/// How a request is made.
#[derive(Clone, Default)]
pub(crate) struct How {
    /// How long it may take.
    pub(crate) time: Option<Duration>,
    /// Fires when the answer is not wanted any more.
    pub(crate) cancel: CancellationToken,
    /// Where the server's questions and progress go.
    pub(crate) channel: Option<Arc<dyn BackChannel>>,
    /// Whether progress is wanted.
    pub(crate) progress: bool,
    /// On whose behalf, where that is not the one who connected.
    pub(crate) hello: Option<Hello>,
    /// From which level on logs are wanted.
    pub(crate) log_level: Option<Arc<str>>,
    /// The tool that is called, and the definition that was agreed to. Where that is another by now, nothing is sent.
    pub(crate) agreed: Option<(Arc<str>, Digest)>,
    /// Headers that repeat arguments, for servers over HTTP.
    pub(crate) headers: Vec<(String, String)>,
}

enum Transport {
    Pipe(Pipe),
    Http(Arc<Endpoint>),
    Old(Arc<OldEndpoint>),
}

/// A connection whose greeting is over. Dropped, it is closed.
pub(crate) struct Connection {
    pub(crate) era: Era,
    pub(crate) version: String,
    pub(crate) facts: Facts,
    hello: Hello,
    peer: Arc<Peer>,
    transport: Transport,
}

impl Connection {
    /// Connects, in the newest era that the server speaks, or in one that is asked for.
    pub(crate) async fn open(place: &Place, hello: &Hello, era: Option<Era>) -> Result<Self, Trouble> {
        let mut begun = Begun::new(place, hello).await?;
        if era != Some(Era::Legacy) {
            let mut probe = Probe::new();
            loop {
                match probe.hear(begun.discover().await?) {
                    Verdict::Modern { version, found } => return Ok(begun.modern(version, &found)),
                    Verdict::Again => {}
                    Verdict::Legacy if era.is_none() => break,
                    Verdict::LegacyAfterRestart if era.is_none() => {
                        begun = Begun::new(place, hello).await?;
                        break;
                    }
                    Verdict::Legacy | Verdict::LegacyAfterRestart => {
                        return Err(Trouble::Protocol("it does not speak the newer era".to_owned()));
                    }
                    Verdict::Authorise => return Err(Trouble::Unauthorised("no credentials are known for it".to_owned())),
                    Verdict::Fail(why) => return Err(Trouble::Protocol(super::trouble::excerpt(&why))),
                }
            }
        }
        match (begun.initialize().await, place) {
            // A server of the oldest transport knows nothing of what is posted there.
            (Err(Trouble::Status { status: status @ (400 | 404 | 405), said }), Place::Url(site)) => {
                let refused = Trouble::Status { status, said };
                let old = Box::pin(Begun::old(site, hello)).await.map_err(|_| refused)?;
                old.initialize().await
            }
            (opened, _) => opened,
        }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn request(&self, method: &str, params: &Map<String, Value>, how: &How) -> Result<Value, Trouble> {
        if let Some(ended) = self.peer.ended() {
            return Err(Trouble::Unreachable(ended.to_string()));
        }
        let mut params = params.clone();
        let mut waiting = self.peer.begin(how.channel.clone());
        self.sign(&mut params, waiting.id, how);
        let request = Message::Request {
            id: RequestId::Number(waiting.id),
            method: method.to_owned(),
            params: (!params.is_empty()).then_some(Value::Object(params)),
        };
        let result = tokio::select! {
            biased;
            () = how.cancel.cancelled() => Err(Trouble::Cancelled),
            result = within(how.time, self.exchange(&request, &mut waiting, how)) => result,
        };
        if matches!(result, Err(Trouble::Cancelled | Trouble::Late(_))) && waiting.is_open() {
            self.cancel(waiting.id);
        }
        match &result {
            Ok(result) if self.era == Era::Modern => check_type(result)?,
            _ => {}
        }
        result
    }

    /// What changes on the server, from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.peer.changes()
    }

    /// Whose connection it is: what belongs to no request goes there.
    pub(crate) fn belongs_to(&self, client: Arc<dyn BackChannel>) {
        self.peer.belongs_to(client);
    }

    /// Why the connection is over, if it is.
    pub(crate) fn ended(&self) -> Option<Trouble> {
        self.peer.ended()
    }

    /// Waits until the connection is over.
    pub(crate) async fn wait_for_end(&self) -> Trouble {
        self.peer.wait_for_end().await
    }

    /// The connection is of no use any more.
    pub(crate) fn end(&self, why: &Trouble) {
        self.peer.end(why);
    }

    /// Whether the server says that it has this.
    pub(crate) fn can(&self, capability: &str) -> bool {
        self.facts.capabilities.get(capability).is_some_and(|value| !value.is_null())
    }

    /// Whether it is over HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    async fn exchange(&self, request: &Message, waiting: &mut Waiting<'_>, how: &How) -> Result<Value, Trouble> {
        match &self.transport {
            Transport::Pipe(pipe) => {
                pipe.send(request).await?;
                waiting.answer().await
            }
            Transport::Old(endpoint) => {
                Box::pin(endpoint.send(request)).await?;
                waiting.answer().await
            }
            Transport::Http(endpoint) => Box::pin(endpoint.request(request, waiting, &how.headers, how.time)).await,
        }
    }

    /// Says in `_meta` what belongs to every request of the era.
    fn sign(&self, params: &mut Map<String, Value>, id: i64, how: &How) {
        if self.era == Era::Legacy && !how.progress {
            return;
        }
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            *meta = json!({});
        }
        let Some(meta) = meta.as_object_mut() else { return };
        if how.progress {
            meta.insert(META.progress.to_owned(), id.into());
        }
        if self.era == Era::Modern {
            sign_modern(meta, &self.version, how.hello.as_ref().unwrap_or(&self.hello));
            if let Some(level) = &how.log_level {
                meta.insert(META.log_level.to_owned(), json!(level));
            }
        }
    }

    /// Lets the server know that an answer is not wanted any more. On HTTP of the newer era, hanging up says it.
    fn cancel(&self, id: i64) {
        let params = json!({"requestId": id, "reason": "nobody waits for the answer any more"});
        let message = Message::Notification { method: "notifications/cancelled".to_owned(), params: Some(params) };
        match &self.transport {
            Transport::Pipe(pipe) => pipe.outbox().put(message),
            Transport::Old(endpoint) => endpoint.outbox().put(message),
            Transport::Http(endpoint) if self.era == Era::Legacy => endpoint.outbox().put(message),
            Transport::Http(_) => {}
        }
    }
}

fn sign_modern(meta: &mut Map<String, Value>, version: &str, hello: &Hello) {
    meta.insert(META.version.to_owned(), version.into());
    meta.insert(META.client.to_owned(), Value::clone(&hello.client));
    meta.insert(META.capabilities.to_owned(), Value::clone(&hello.capabilities));
}

async fn within<T>(time: Option<Duration>, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    match time {
        Some(time) => timeout(time, work).await.unwrap_or(Err(Trouble::Late(time))),
        None => work.await,
    }
}

/// A result of the newer era says whether it is one.
fn check_type(result: &Value) -> Result<(), Trouble> {
    match result.get("resultType").and_then(Value::as_str) {
        None | Some("complete" | "input_required") => Ok(()),
        Some(other) => Err(Trouble::Protocol(format!("there is no result of the type `{}`", super::trouble::excerpt(other)))),
    }
}

async fn send(transport: &Transport, message: &Message) -> Result<(), Trouble> {
    match transport {
        Transport::Pipe(pipe) => pipe.send(message).await,
        Transport::Old(endpoint) => Box::pin(endpoint.send(message)).await,
        Transport::Http(endpoint) => Box::pin(endpoint.send(message)).await,
    }
}

/// A connection that is not greeted yet.
struct Begun {
    /// How much longer an answer may take because a person may be asked to log in.
    slack: Duration,
    hello: Hello,
    peer: Arc<Peer>,
    transport: Transport,
}

impl Begun {
    async fn new(place: &Place, hello: &Hello) -> Result<Self, Trouble> {
        let peer = Peer::new();
        let transport = match place {
            Place::Command(launch) => Transport::Pipe(Pipe::start(launch, &peer).await?),
            Place::Url(site) => Transport::Http(Endpoint::new(site.clone(), &peer)),
        };
        let slack = if let Place::Url(site) = place { site.slack } else { Duration::ZERO };
        Ok(Self { hello: hello.clone(), peer, transport, slack })
    }

    /// The same, over the oldest transport.
    async fn old(site: &Site, hello: &Hello) -> Result<Self, Trouble> {
        let peer = Peer::new();
        let transport = Transport::Old(OldEndpoint::open(site, &peer).await?);
        Ok(Self { slack: site.slack, hello: hello.clone(), peer, transport })
    }

    async fn ask(&self, method: &str, params: Value, time: Duration) -> Result<Value, Trouble> {
        let mut waiting = self.peer.begin(None);
        let request = Message::Request { id: RequestId::Number(waiting.id), method: method.to_owned(), params: Some(params) };
        let exchange = async {
            match &self.transport {
                Transport::Pipe(pipe) => {
                    pipe.send(&request).await?;
                    waiting.answer().await
                }
                Transport::Old(endpoint) => {
                    Box::pin(endpoint.send(&request)).await?;
                    waiting.answer().await
                }
                Transport::Http(endpoint) => Box::pin(endpoint.request(&request, &mut waiting, &[], Some(time))).await,
            }
        };
        within(Some(time + self.slack), exchange).await
    }

    /// What the server says to the first question of the newer era.
    async fn discover(&self) -> Result<Heard, Trouble> {
        let version = Era::Modern.newest();
        let mut meta = Map::new();
        sign_modern(&mut meta, version, &self.hello);
        if let Transport::Http(endpoint) = &self.transport {
            endpoint.set_version(Era::Modern, version);
        }
        let time = if matches!(self.transport, Transport::Pipe(_)) { PROBE } else { GREETING };
        match self.ask("server/discover", json!({"_meta": meta}), time).await {
            Ok(found) => Ok(Heard::Result(found)),
            Err(Trouble::Refused(error)) => Ok(Heard::Refused(error)),
            Err(Trouble::Status { status, said }) if status >= 500 => Err(Trouble::Status { status, said }),
            Err(Trouble::Status { status, .. }) => Ok(Heard::Status(status)),
            Err(Trouble::Late(_)) => Ok(Heard::Silence),
            Err(Trouble::Forgotten) => Ok(Heard::Status(404)),
            Err(other) => Err(other),
        }
    }

    fn modern(self, version: &str, found: &Value) -> Connection {
        let server = found.get("_meta").and_then(|meta| meta.get(META.server)).or_else(|| found.get("serverInfo"));
        let facts = facts(found, server);
        Connection { era: Era::Modern, version: version.to_owned(), facts, hello: self.hello, peer: self.peer, transport: self.transport }
    }

    /// The greeting of the older era.
    async fn initialize(self) -> Result<Connection, Trouble> {
        if let Transport::Http(endpoint) = &self.transport {
            endpoint.set_version(Era::Legacy, "");
        }
        let params = json!({
            "protocolVersion": Era::Legacy.newest(),
            "capabilities": self.hello.capabilities,
            "clientInfo": self.hello.client,
        });
        let found = self.ask("initialize", params, GREETING).await.map_err(|trouble| match trouble {
            Trouble::Refused(ref error) if error.code == CODES.version => {
                Trouble::Protocol(format!("it does not speak the older era: {trouble}"))
            }
            other => other,
        })?;
        let version = found.get("protocolVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        if Era::of(&version) != Some(Era::Legacy) {
            let version = super::trouble::excerpt(&version);
            return Err(Trouble::Protocol(format!("it answers `initialize` with the version `{version}`, which is not known here")));
        }
        if let Transport::Http(endpoint) = &self.transport {
            endpoint.set_version(Era::Legacy, &version);
        }
        send(&self.transport, &Message::Notification { method: "notifications/initialized".to_owned(), params: None }).await?;
        if let Transport::Http(endpoint) = &self.transport {
            endpoint.listen().await;
        }
        let facts = facts(&found, found.get("serverInfo"));
        Ok(Connection { era: Era::Legacy, version, facts, hello: self.hello, peer: self.peer, transport: self.transport })
    }
}

fn facts(found: &Value, server: Option<&Value>) -> Facts {
    let text = |field: &str| server.and_then(|server| server.get(field)).and_then(Value::as_str).unwrap_or_default();
    let instructions = found.get("instructions").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    Facts {
        name: super::trouble::excerpt(text("name")),
        version: super::trouble::excerpt(text("version")),
        instructions: instructions.map(|text| helve_core::printable::shorten_bytes(text, MAX_INSTRUCTIONS)),
        capabilities: found.get("capabilities").cloned().unwrap_or_default(),
    }
}
