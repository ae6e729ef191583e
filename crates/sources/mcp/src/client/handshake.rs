//! The handshake of a connection: determines the era of the server, and exchanges what client and server say about themselves.

use std::sync::Arc;
use std::time::Duration;

use helve_core::printable::shorten_bytes;
use helve_mcp_wire::{CODES, Era, META, Message, Meta, Probe, ProbeOutcome, ProbeResponse, RequestId};
use serde_json::{Map, Value, json};

use super::connection::{Connection, ServerAddress, Transport, within};
use super::error::{RequestError, excerpt};
use super::http::{HttpEndpoint, Site, SseEndpoint};
use super::limits::{HANDSHAKE_TIMEOUT, MAX_INSTRUCTIONS, PROBE_TIMEOUT};
use super::peer::Peer;
use super::stdio::Pipe;

/// The name, version and capabilities that a client sends to servers.
#[derive(Debug, Clone)]
pub(crate) struct ClientIdentity {
    /// The value of `clientInfo`.
    pub(crate) client: Arc<Value>,
    /// The value of `clientCapabilities`.
    pub(crate) capabilities: Arc<Value>,
}

impl ClientIdentity {
    /// Creates the identity of Helve itself.
    pub(crate) fn helve(capabilities: Value) -> Self {
        let client = json!({"name": "helve", "version": env!("CARGO_PKG_VERSION")});
        Self { client: Arc::new(client), capabilities: Arc::new(capabilities) }
    }

    /// Adds the identity and the protocol version to the `_meta` of a modern request.
    pub(super) fn sign(&self, meta: &mut Map<String, Value>, version: &str) {
        meta.insert(META.version.to_owned(), version.into());
        meta.insert(META.client.to_owned(), Value::clone(&self.client));
        meta.insert(META.capabilities.to_owned(), Value::clone(&self.capabilities));
    }
}

/// The name, version, instructions and capabilities that a server states.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ServerFacts {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: Value,
}

impl ServerFacts {
    fn read(found: &Value, server: Option<&Value>) -> Self {
        let text = |field: &str| server.and_then(|server| server.get(field)).and_then(Value::as_str).unwrap_or_default();
        let instructions = found.get("instructions").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        Self {
            name: excerpt(text("name")),
            version: excerpt(text("version")),
            instructions: instructions.map(|text| shorten_bytes(text, MAX_INSTRUCTIONS)),
            capabilities: found.get("capabilities").cloned().unwrap_or_default(),
        }
    }
}

impl Connection {
    /// Connects in the requested era of the protocol; without one, in the newest era that the server supports.
    pub(crate) async fn open(address: &ServerAddress, client_identity: &ClientIdentity, era: Option<Era>) -> Result<Self, RequestError> {
        let mut handshake = Handshake::new(address, client_identity).await?;
        if era != Some(Era::Legacy) {
            let mut probe = Probe::new();
            loop {
                match probe.evaluate(handshake.discover().await?) {
                    ProbeOutcome::Modern { version, found } => return Ok(handshake.modern(version, &found)),
                    ProbeOutcome::Retry => {}
                    ProbeOutcome::Legacy if era.is_none() => break,
                    ProbeOutcome::LegacyAfterRestart if era.is_none() => {
                        handshake = Handshake::new(address, client_identity).await?;
                        break;
                    }
                    ProbeOutcome::Legacy | ProbeOutcome::LegacyAfterRestart => {
                        return Err(RequestError::Protocol("the server does not support the modern era".to_owned()));
                    }
                    ProbeOutcome::LoginRequired => return Err(RequestError::LoginRequired("the server denies access".to_owned())),
                    ProbeOutcome::Fail(why) => return Err(RequestError::Protocol(excerpt(&why))),
                }
            }
        }
        match (handshake.initialize().await, address) {
            // A server with the oldest transport rejects messages that are posted to this URL.
            (Err(RequestError::Status { status: status @ (400 | 404 | 405), body }), ServerAddress::Url(site)) => {
                let refused = RequestError::Status { status, body };
                let sse = Box::pin(Handshake::over_sse(site, client_identity)).await.map_err(|_| refused)?;
                sse.initialize().await
            }
            (opened, _) => opened,
        }
    }
}

/// A connection before the end of its handshake.
struct Handshake {
    /// Time added to the timeout of each request, because a person may have to log in first.
    slack: Duration,
    client_identity: ClientIdentity,
    peer: Arc<Peer>,
    transport: Transport,
}

impl Handshake {
    async fn new(address: &ServerAddress, client_identity: &ClientIdentity) -> Result<Self, RequestError> {
        let peer = Peer::new();
        let (transport, slack) = match address {
            ServerAddress::Command(launch) => (Transport::Pipe(Pipe::start(launch, &peer).await?), Duration::ZERO),
            ServerAddress::Url(site) => (Transport::Http(HttpEndpoint::new(site.clone(), &peer)), site.slack),
        };
        Ok(Self { client_identity: client_identity.clone(), peer, transport, slack })
    }

    /// Opens a connection over the HTTP+SSE transport of 2024.
    async fn over_sse(site: &Site, client_identity: &ClientIdentity) -> Result<Self, RequestError> {
        let peer = Peer::new();
        let transport = Transport::Sse(SseEndpoint::open(site, &peer).await?);
        Ok(Self { slack: site.slack, client_identity: client_identity.clone(), peer, transport })
    }

    async fn request(&self, method: &str, params: Value, time: Duration) -> Result<Value, RequestError> {
        let mut pending = self.peer.open_request(None);
        let request = Message::Request { id: RequestId::Number(pending.id), method: method.to_owned(), params: Some(params) };
        within(Some(time + self.slack), self.transport.request(&request, &mut pending, &[], Some(time))).await
    }

    fn set_version(&self, era: Era, version: &str) {
        if let Transport::Http(endpoint) = &self.transport {
            endpoint.set_version(era, version);
        }
    }

    /// Sends `server/discover`, the first request of the modern era.
    async fn discover(&self) -> Result<ProbeResponse, RequestError> {
        let version = Era::Modern.newest();
        let mut params = Map::new();
        Meta::change(&mut params, |meta| self.client_identity.sign(meta, version));
        self.set_version(Era::Modern, version);
        let time = if matches!(self.transport, Transport::Pipe(_)) { PROBE_TIMEOUT } else { HANDSHAKE_TIMEOUT };
        match self.request("server/discover", Value::Object(params), time).await {
            Ok(found) => Ok(ProbeResponse::Result(found)),
            Err(RequestError::Rpc(error)) => Ok(ProbeResponse::Error(error)),
            Err(RequestError::Status { status, .. }) if status < 500 => Ok(ProbeResponse::Status(status)),
            Err(RequestError::TimedOut(_)) => Ok(ProbeResponse::TimedOut),
            Err(RequestError::SessionExpired) => Ok(ProbeResponse::Status(404)),
            Err(other) => Err(other),
        }
    }

    fn modern(self, version: &str, found: &Value) -> Connection {
        let server = Meta::of(Some(found)).and_then(|meta| meta.get(META.server)).or_else(|| found.get("serverInfo"));
        let facts = ServerFacts::read(found, server);
        self.finish(Era::Modern, version.to_owned(), facts)
    }

    /// Performs the handshake of the legacy era.
    async fn initialize(self) -> Result<Connection, RequestError> {
        self.set_version(Era::Legacy, "");
        let params = json!({
            "protocolVersion": Era::Legacy.newest(),
            "capabilities": self.client_identity.capabilities,
            "clientInfo": self.client_identity.client,
        });
        let found = self.request("initialize", params, HANDSHAKE_TIMEOUT).await.map_err(|error| match error {
            RequestError::Rpc(ref rpc) if rpc.code == CODES.version => {
                RequestError::Protocol(format!("the server does not support the legacy era: {error}"))
            }
            other => other,
        })?;
        let version = found.get("protocolVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        if Era::of(&version) != Some(Era::Legacy) {
            let version = excerpt(&version);
            return Err(RequestError::Protocol(format!("the response to `initialize` has the unknown version `{version}`")));
        }
        self.set_version(Era::Legacy, &version);
        self.transport.send(&Message::Notification { method: "notifications/initialized".to_owned(), params: None }).await?;
        if let Transport::Http(endpoint) = &self.transport {
            endpoint.listen().await;
        }
        let facts = ServerFacts::read(&found, found.get("serverInfo"));
        Ok(self.finish(Era::Legacy, version, facts))
    }

    fn finish(self, era: Era, version: String, facts: ServerFacts) -> Connection {
        Connection { era, version, facts, client_identity: self.client_identity, peer: self.peer, transport: self.transport }
    }
}
