//! A server of the oldest HTTP transport: one stream on which it speaks, and an address, named in it, to which it is spoken.

use std::sync::Arc;

use helve_fetch::{Bytes, Events, Exchange, HeaderMap, HeaderValue, Method, StreamLimits, StreamingResponse, header};
use helve_mcp_wire::Message;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::http::{MAX_ERROR, Posts, QUIET, Site, is_stream, of_events, patience, read_all, read_messages};
use super::peer::{Outbox, Peer};
use super::trouble::Trouble;
use crate::limits::GREETING;

/// How many answers and notifications wait to be posted.
const OUTBOX: usize = 64;

/// A connection to it. Dropped, it is closed.
pub(crate) struct OldEndpoint {
    to: Site,
    outbox: Arc<Posts>,
    stop: CancellationToken,
}

impl Drop for OldEndpoint {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl OldEndpoint {
    /// Opens the stream, and waits for the address that is named in it.
    pub(crate) async fn open(site: &Site, peer: &Arc<Peer>) -> Result<Arc<Self>, Trouble> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let exchange = Exchange { method: Method::GET, headers, body: Bytes::new(), may_repeat: true };
        let patience = StreamLimits { first_byte: GREETING, idle: QUIET, total: QUIET, bytes: u64::MAX };
        let response = site.send(exchange, patience).await?;
        if !response.status.is_success() || !is_stream(&response) {
            let status = response.status.as_u16();
            return Err(Trouble::status(status, &read_all(response, MAX_ERROR).await.unwrap_or_default()));
        }
        let mut stream = Stream { response, events: Events::default(), address: None };
        let (sender, messages) = mpsc::channel(OUTBOX);
        let outbox = Arc::new(Posts(sender));
        let address = tokio::time::timeout(GREETING, stream.address(peer, &outbox)).await.map_err(|_| Trouble::Late(GREETING))??;
        let stop = CancellationToken::new();
        let endpoint = Arc::new(Self { to: site.beside(&address)?, outbox: outbox.clone(), stop: stop.clone() });
        tokio::spawn(listen(stream, peer.clone(), outbox, stop.clone()));
        tokio::spawn(post(Arc::downgrade(&endpoint), messages, stop));
        Ok(endpoint)
    }

    /// Posts a message. What it is answered with comes on the stream.
    pub(crate) async fn send(&self, message: &Message) -> Result<(), Trouble> {
        let body = Bytes::from(message.write());
        let exchange = Exchange { method: Method::POST, headers: HeaderMap::new(), body, may_repeat: false };
        let response = self.to.send(exchange, patience(Some(GREETING))).await?;
        let status = response.status;
        let body = read_all(response, MAX_ERROR).await.unwrap_or_default();
        if status.is_success() { Ok(()) } else { Err(Trouble::status(status.as_u16(), &body)) }
    }

    /// Where answers and notifications are put.
    pub(crate) fn outbox(&self) -> Arc<dyn Outbox> {
        self.outbox.clone()
    }
}

async fn post(endpoint: std::sync::Weak<OldEndpoint>, mut messages: mpsc::Receiver<Message>, stop: CancellationToken) {
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            () = stop.cancelled() => return,
        };
        let (Some(message), Some(endpoint)) = (message, endpoint.upgrade()) else { return };
        if let Err(trouble) = endpoint.send(&message).await {
            tracing::debug!(%trouble, "a server did not take what it was told");
        }
    }
}

async fn listen(mut stream: Stream, peer: Arc<Peer>, outbox: Arc<Posts>, stop: CancellationToken) {
    let ended = tokio::select! {
        ended = stream.read(&peer, &outbox, false) => ended,
        () = stop.cancelled() => return,
    };
    let why = ended.err().unwrap_or_else(|| Trouble::Gone("the stream has ended".to_owned()));
    peer.end(&Trouble::Gone(why.to_string()));
}

/// The stream on which the server speaks.
struct Stream {
    response: StreamingResponse,
    events: Events,
    address: Option<String>,
}

impl Stream {
    async fn address(&mut self, peer: &Arc<Peer>, outbox: &Arc<Posts>) -> Result<String, Trouble> {
        self.read(peer, outbox, true).await?;
        self.address.take().ok_or_else(|| Trouble::Protocol("the stream names no address".to_owned()))
    }

    /// Reads until the stream ends, or until the address is there.
    async fn read(&mut self, peer: &Arc<Peer>, outbox: &Arc<Posts>, until_address: bool) -> Result<(), Trouble> {
        let outbox: Arc<dyn Outbox> = outbox.clone();
        while let Some(chunk) = self.response.chunk().await? {
            let address = &mut self.address;
            let mut sink = |name: &str, data: &[u8]| {
                if name == "endpoint" {
                    *address = Some(String::from_utf8_lossy(data).trim().to_owned());
                } else if !data.trim_ascii().is_empty() {
                    for message in read_messages(data)? {
                        peer.deliver(message, None, &outbox);
                    }
                }
                Ok(())
            };
            self.events.feed(&chunk, &mut sink).map_err(of_events)?;
            if until_address && self.address.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }
}
