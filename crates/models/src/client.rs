//! [`HttpModel`], the client that sends requests to a model, retries them after transient failures, and streams the responses.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use helve_core::{Backoff, Deltas, LanguageModel, ModelDelta, ModelError, ModelInfo, ModelRequest, ModelStream, PollDeltas, Usage};
use helve_fetch::{
    Bytes, ConnectionPool, EventError, Events, Exchange, HeaderMap, Reach, StreamLimits, StreamingResponse, Target, Url, header,
};
use secrecy::SecretString;
use tokio::time::Sleep;

use crate::failure;
use crate::wire::{EventReader, Wire, read_event, read_whole};

/// Number of bytes after which the client stops reading an error response.
const ERROR_BYTES: usize = 64 << 10;
/// Maximum number of bytes that are allocated in advance because of a `Content-Length` header.
const MAX_RESERVED: usize = 4 << 20;
/// Number of buffered deltas at which a poll returns even if more data is available.
const GROUP: usize = 256;
/// Timeout for the end of the HTTP stream, after the provider has marked the response as complete.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// Timeout for reading an error response.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum `Retry-After` delay that the client accepts. It does not retry after a longer one.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);
/// The first delay between retries, and the maximum delay.
const BACKOFF: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(32)];

/// The options of an [`HttpModel`].
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// The API key.
    pub key: Option<SecretString>,
    /// Which addresses the client may reach.
    pub reach: Reach,
    /// Timeouts and the maximum size of a response.
    pub limits: StreamLimits,
    /// Maximum number of retries of a request that failed before its response started.
    pub retries: u32,
    /// The price of the model, for providers that do not report the cost of a response.
    pub price: Option<Price>,
    /// Additional headers of every request.
    pub headers: HeaderMap,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            key: None,
            reach: Reach::Any,
            limits: StreamLimits {
                first_byte: Duration::from_mins(5),
                idle: Duration::from_mins(2),
                total: Duration::from_mins(30),
                bytes: 32 << 20,
            },
            retries: 3,
            price: None,
            headers: HeaderMap::new(),
        }
    }
}

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Price of a million input tokens, in US dollars.
    pub input: f64,
    /// Price of a million output tokens, in US dollars.
    pub output: f64,
}

impl Price {
    /// Returns the cost of a response, or `None` if it is not a finite, non-negative number.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52 tokens")]
    fn of(self, usage: &Usage) -> Option<f64> {
        let cost = (usage.input_tokens as f64 * self.input + usage.output_tokens as f64 * self.output) / 1e6;
        // A negative cost or NaN in the sum would let a run exceed its cost limit.
        (cost.is_finite() && cost >= 0.0).then_some(cost)
    }
}

impl std::fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpModel").field("name", &self.0.info.name).field("provider", &self.0.info.provider).finish_non_exhaustive()
    }
}

/// A model behind an HTTP API. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct HttpModel(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    info: ModelInfo,
    wire: Arc<dyn Wire>,
    base: Url,
    headers: HeaderMap,
    options: ModelOptions,
    connections: ConnectionPool,
    /// The targets of requests without and with streaming. Each is set at the first request.
    targets: [OnceLock<Target>; 2],
}

impl HttpModel {
    /// Creates a client for a model at a base URL with a wire format.
    #[must_use]
    pub fn new(mut info: ModelInfo, wire: impl Wire, base: Url, options: ModelOptions, connections: ConnectionPool) -> Self {
        info.wire = wire.name().into();
        let mut headers = options.headers.clone();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        wire.headers(options.key.as_ref(), &mut headers);
        Self(Arc::new(Inner { info, wire: Arc::new(wire), base, headers, options, connections, targets: Default::default() }))
    }

    /// Returns the base URL and the name of the model, separated by `#`. Omits the query of the URL, which may contain a key.
    #[must_use]
    pub fn address(&self) -> String {
        let mut base = self.0.base.clone();
        base.set_query(None);
        format!("{base}#{}", self.0.info.name)
    }

    /// Sets whether the model supports native function calling.
    #[must_use]
    pub fn calling_natively(self, native: bool) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        inner.info.calls_natively = Some(native);
        Self(Arc::new(inner))
    }
}

impl LanguageModel for HttpModel {
    fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    fn ask(&self, request: ModelRequest) -> impl Future<Output = Result<ModelStream, ModelError>> + Send {
        // The body is serialised before the first await, so that the future does not contain the request.
        let body = Bytes::from(self.0.wire.to_wire(&self.0.info.name, &request));
        self.0.ask(body, request.stream)
    }
}

impl Inner {
    /// Returns the target of requests. Requests with and without streaming may have different URLs.
    fn target(&self, stream: bool) -> Result<&Target, ModelError> {
        let known = &self.targets[usize::from(stream)];
        if let Some(target) = known.get() {
            return Ok(target);
        }
        let mut url = self.base.clone();
        let path = format!("{}{}", self.base.path().trim_end_matches('/'), self.wire.path(&self.info.name, stream));
        // The base URL may already have a query, such as an API version.
        match path.split_once('?') {
            None => url.set_path(&path),
            Some((path, query)) => {
                url.set_path(path);
                let own = self.base.query().map(|own| format!("{own}&")).unwrap_or_default();
                url.set_query(Some(&format!("{own}{query}")));
            }
        }
        let target = self.connections.target(&url, &self.headers, self.options.reach).map_err(|error| failure::of_fetch(&error))?;
        Ok(known.get_or_init(|| target))
    }

    async fn ask(&self, body: Bytes, stream: bool) -> Result<ModelStream, ModelError> {
        let target = self.target(stream)?;
        let mut retries = 0..self.options.retries;
        let mut backoff = None;
        loop {
            let error = match self.exchange(target, body.clone()).await {
                Ok(response) => return self.read(response).await,
                Err(error) => error,
            };
            let delay = match &error {
                ModelError::Overloaded { retry_after: Some(after), .. } => Some(*after).filter(|after| *after <= MAX_RETRY_AFTER),
                ModelError::Timeout(_) => None,
                error => error.is_retryable().then(|| backoff.get_or_insert_with(|| Backoff::new(BACKOFF[0], BACKOFF[1])).delay()),
            };
            let (Some(delay), Some(_)) = (delay, retries.next()) else { return Err(error) };
            tracing::warn!(model = %self.info.name, %error, ?delay, "model request failed; retrying");
            tokio::time::sleep(delay).await;
        }
    }

    async fn exchange(&self, target: &Target, body: Bytes) -> Result<StreamingResponse, ModelError> {
        let exchange = Exchange::post(body);
        let sent = self.connections.send(target, &exchange, self.options.limits).await;
        let mut response = sent.map_err(|error| failure::of_fetch(&error))?;
        if response.status.is_success() {
            return Ok(response);
        }
        let mut body = Vec::new();
        // Errors while reading are ignored, because the provider's error message is more useful.
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                if body.len() > ERROR_BYTES {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(ERROR_TIMEOUT, read).await;
        Err(failure::of_response(response.status.as_u16(), &response.headers, &body))
    }

    async fn read(&self, mut response: StreamingResponse) -> Result<ModelStream, ModelError> {
        let price = self.options.price;
        if response.header("content-type").is_some_and(|kind| kind.trim_start().starts_with("text/event-stream")) {
            let source =
                Source { response, events: Events::default(), reader: self.wire.events(), closing: None, over: false, failed: None };
            return Ok(match price {
                Some(price) => ModelStream::new(Priced { source, price, raw: Deltas::default() }),
                None => ModelStream::new(source),
            });
        }
        let announced = response.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = Vec::with_capacity(announced.min(MAX_RESERVED));
        while let Some(chunk) = response.chunk().await.map_err(|error| failure::of_fetch(&error))? {
            body.extend_from_slice(&chunk);
        }
        let mut deltas = Deltas::with_room(body.len());
        read_whole(&*self.wire, &body, &mut deltas)?;
        Ok(ModelStream::whole(match price {
            Some(price) => priced(&deltas, price),
            None => deltas,
        }))
    }
}

/// The deltas of a streamed response.
struct Source {
    response: StreamingResponse,
    events: Events,
    reader: Box<dyn EventReader>,
    /// The timeout for the end of the HTTP stream, once the response is complete. A connection can be reused only after the end.
    closing: Option<Pin<Box<Sleep>>>,
    over: bool,
    /// An error that the next poll returns, after the deltas that arrived before the error.
    failed: Option<ModelError>,
}

impl PollDeltas for Source {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        if self.over {
            return Poll::Ready(Ok(false));
        }
        let polled = self.poll_response(cx, into);
        if let Poll::Ready(Err(error)) = polled {
            self.over = true;
            if into.is_empty() {
                return Poll::Ready(Err(error));
            }
            self.failed = Some(error);
            return Poll::Ready(Ok(true));
        }
        polled
    }
}

impl Source {
    fn poll_response(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        loop {
            match self.response.poll_chunk(cx) {
                Poll::Ready(Ok(Some(_))) if self.closing.is_some() => {}
                Poll::Ready(Ok(Some(chunk))) => {
                    let reader = &mut self.reader;
                    self.events
                        .feed(&chunk, &mut |name: &str, data: &[u8]| read_event(&mut **reader, name, data, into))
                        .map_err(of_events)?;
                    if self.reader.is_over() {
                        self.closing = Some(Box::pin(tokio::time::sleep(CLOSE_TIMEOUT)));
                    } else if into.len() >= GROUP {
                        return Poll::Ready(Ok(true));
                    }
                }
                Poll::Ready(Err(error)) if self.closing.is_none() => return Poll::Ready(Err(failure::of_fetch(&error))),
                Poll::Ready(_) => return Poll::Ready(self.finish(into)),
                Poll::Pending => {
                    if let Some(timeout) = &mut self.closing
                        && timeout.as_mut().poll(cx).is_ready()
                    {
                        return Poll::Ready(self.finish(into));
                    }
                    return if into.is_empty() { Poll::Pending } else { Poll::Ready(Ok(true)) };
                }
            }
        }
    }

    fn finish(&mut self, into: &mut Deltas) -> Result<bool, ModelError> {
        self.over = true;
        let reader = &mut self.reader;
        self.events.finish(&mut |name: &str, data: &[u8]| read_event(&mut **reader, name, data, into)).map_err(of_events)?;
        self.reader.finish(into)?;
        Ok(!into.is_empty())
    }
}

/// Converts an error of the event parser.
pub(crate) fn of_events(error: EventError<ModelError>) -> ModelError {
    match error {
        EventError::TooLarge => ModelError::Protocol(error.to_string()),
        EventError::Sink(error) => error,
    }
}

/// The deltas of a streamed response, with the cost added to its usage.
struct Priced {
    source: Source,
    price: Price,
    raw: Deltas,
}

impl PollDeltas for Priced {
    fn poll_deltas(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        self.raw.clear();
        let polled = self.source.poll_deltas(cx, &mut self.raw);
        *into = priced(&self.raw, self.price);
        polled
    }
}

/// Returns the deltas with the cost added to usages that have none.
fn priced(raw: &Deltas, price: Price) -> Deltas {
    let mut deltas = Deltas::default();
    for delta in raw.iter() {
        deltas.push(match delta {
            ModelDelta::Usage(usage) if usage.cost.is_none() => ModelDelta::Usage(Usage { cost: price.of(&usage), ..usage }),
            other => other,
        });
    }
    deltas
}
