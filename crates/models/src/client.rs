//! The client: one request, its repetitions where that may help, and the reading of its response as it comes.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use helve_core::{Deltas, LanguageModel, ModelError, ModelInfo, ModelRequest, ModelStream, PollDeltas, Usage};
use helve_fetch::{Bytes, ConnectionPool, EventError, Events, HeaderMap, Patience, Reach, StreamingResponse, Target, Url, header};
use secrecy::SecretString;
use tokio::time::Sleep;

use crate::failure;
use crate::wire::{EventReader, Wire, read_event, read_whole};

/// Of a response that is no success, only this much is read.
const ERROR_BYTES: usize = 64 << 10;
/// No more room than this is made for a response on the word of its head.
const LARGEST_GUESS: usize = 4 << 20;
/// A group of pieces is given away when there are this many.
const GROUP: usize = 256;
/// How long a connection may take to end after its response.
const LAST_MOMENT: Duration = Duration::from_millis(100);
/// How long is read what a provider says about its refusal.
const REFUSAL: Duration = Duration::from_secs(10);
/// Nobody waits longer than this for a provider that asks for patience.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How a model is reached.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// Its key.
    pub key: Option<SecretString>,
    /// Who may be reached.
    pub reach: Reach,
    /// How long is waited for what.
    pub patience: Patience,
    /// How often a request is repeated that failed before anything came of it.
    pub retries: u32,
    /// What it costs, where the provider does not say.
    pub price: Option<Price>,
    /// Headers that go with every request.
    pub headers: HeaderMap,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            key: None,
            reach: Reach::Any,
            patience: Patience {
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

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
}

impl Price {
    #[expect(clippy::cast_precision_loss, reason = "nobody uses 2^52 tokens")]
    fn of(self, usage: &Usage) -> Option<f64> {
        let cost = (usage.input_tokens as f64 * self.input + usage.output_tokens as f64 * self.output) / 1e6;
        // What cannot be added up would let a run spend more than it may.
        (cost.is_finite() && cost >= 0.0).then_some(cost)
    }
}

impl std::fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpModel").field("name", &self.0.info.name).field("provider", &self.0.info.provider).finish_non_exhaustive()
    }
}

/// A model behind HTTP. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct HttpModel(Arc<Inner>);

struct Inner {
    info: ModelInfo,
    wire: Arc<dyn Wire>,
    base: Url,
    headers: HeaderMap,
    options: ModelOptions,
    connections: ConnectionPool,
    /// Where requests for whole answers and for streamed ones go, once the first was made.
    targets: [OnceLock<Target>; 2],
}

impl HttpModel {
    /// A model at a base address, spoken to over a wire.
    #[must_use]
    pub fn new(mut info: ModelInfo, wire: impl Wire, base: Url, options: ModelOptions, connections: ConnectionPool) -> Self {
        info.wire = wire.name().into();
        let mut headers = options.headers.clone();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        wire.headers(options.key.as_ref(), &mut headers);
        Self(Arc::new(Inner { info, wire: Arc::new(wire), base, headers, options, connections, targets: Default::default() }))
    }
}

impl HttpModel {
    /// Where it is: its server's address and its own name. Without a query, which may hold a key.
    #[must_use]
    pub fn address(&self) -> String {
        let mut base = self.0.base.clone();
        base.set_query(None);
        format!("{base}#{}", self.0.info.name)
    }

    /// The same model, of which it is known whether it calls functions natively.
    #[must_use]
    pub fn calling_natively(self, native: bool) -> Self {
        let Inner { info, base, headers, options, connections, .. } = &*self.0;
        let mut info = info.clone();
        info.calls_natively = Some(native);
        let wire = self.0.wire.clone();
        Self(Arc::new(Inner {
            info,
            wire,
            base: base.clone(),
            headers: headers.clone(),
            options: options.clone(),
            connections: connections.clone(),
            targets: Default::default(),
        }))
    }
}

impl LanguageModel for HttpModel {
    fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    fn ask(&self, request: ModelRequest) -> impl Future<Output = Result<ModelStream, ModelError>> + Send {
        // Written before anyone waits, so that the future is small.
        let body = Bytes::from(self.0.wire.to_wire(&self.0.info.name, &request));
        self.0.ask(body, request.stream)
    }
}

impl Inner {
    /// Where requests go; whole answers and streamed ones may have different addresses.
    fn target(&self, stream: bool) -> Result<&Target, ModelError> {
        let place = &self.targets[usize::from(stream)];
        if let Some(target) = place.get() {
            return Ok(target);
        }
        let mut url = self.base.clone();
        let path = format!("{}{}", self.base.path().trim_end_matches('/'), self.wire.path(&self.info.name, stream));
        // An address may have a query of its own, such as a version.
        match path.split_once('?') {
            None => url.set_path(&path),
            Some((path, query)) => {
                url.set_path(path);
                let own = self.base.query().map(|own| format!("{own}&")).unwrap_or_default();
                url.set_query(Some(&format!("{own}{query}")));
            }
        }
        let target = self.connections.target(&url, &self.headers, self.options.reach).map_err(|error| failure::of_fetch(&error))?;
        Ok(place.get_or_init(|| target))
    }

    async fn ask(&self, body: Bytes, stream: bool) -> Result<ModelStream, ModelError> {
        let target = self.target(stream)?;
        let mut failed = 0;
        loop {
            let error = match self.exchange(target, body.clone()).await {
                Ok(response) => return self.read(response).await,
                Err(error) => error,
            };
            failed += 1;
            match wait(&error, failed) {
                Some(wait) if failed <= self.options.retries => {
                    tracing::warn!(model = %self.info.name, %error, ?wait, "the model did not response; asking again");
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(error),
            }
        }
    }

    async fn exchange(&self, target: &Target, body: Bytes) -> Result<StreamingResponse, ModelError> {
        let sent = self.connections.post(target, body, self.options.patience);
        let mut response = sent.await.map_err(|error| failure::of_fetch(&error))?;
        if response.status.is_success() {
            return Ok(response);
        }
        let mut body = Vec::new();
        // What the provider said is worth more than that it hung up while saying it.
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                if body.len() > ERROR_BYTES {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(REFUSAL, read).await;
        Err(failure::of_answer(response.status.as_u16(), &response.headers, &body))
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
        let mut body = Vec::with_capacity(announced.min(LARGEST_GUESS));
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

/// How long to wait before asking again; nothing where that would not help.
fn wait(error: &ModelError, failed: u32) -> Option<Duration> {
    match error {
        ModelError::Overloaded { retry_after: Some(after), .. } => (*after <= LONGEST_WAIT).then_some(*after),
        error if error.is_retryable() && !matches!(error, ModelError::Timeout(_)) => {
            let back_off = Duration::from_millis(500) * 2u32.saturating_pow(failed.saturating_sub(1).min(6));
            Some(back_off.mul_f64(0.75 + 0.5 * fastrand::f64()))
        }
        _ => None,
    }
}

/// The pieces of a response, out of the events of a stream.
struct Source {
    response: StreamingResponse,
    events: Events,
    reader: Box<dyn EventReader>,
    /// The provider said that the response is over; the connection gets a moment to end too, so that it can be used again.
    closing: Option<Pin<Box<Sleep>>>,
    over: bool,
    /// A failure that is told after what came before it.
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
        let polled = self.poll_answer(cx, into);
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
    fn poll_answer(&mut self, cx: &mut Context<'_>, into: &mut Deltas) -> Poll<Result<bool, ModelError>> {
        loop {
            match self.response.poll_chunk(cx) {
                Poll::Ready(Ok(Some(_))) if self.closing.is_some() => {}
                Poll::Ready(Ok(Some(chunk))) => {
                    let reader = &mut self.reader;
                    self.events
                        .feed(&chunk, &mut |name: &str, data: &[u8]| read_event(&mut **reader, name, data, into))
                        .map_err(of_events)?;
                    if self.reader.is_over() {
                        self.closing = Some(Box::pin(tokio::time::sleep(LAST_MOMENT)));
                    } else if into.len() >= GROUP {
                        return Poll::Ready(Ok(true));
                    }
                }
                Poll::Ready(Err(error)) if self.closing.is_none() => return Poll::Ready(Err(failure::of_fetch(&error))),
                Poll::Ready(_) => return Poll::Ready(self.finish(into)),
                Poll::Pending => {
                    if let Some(moment) = &mut self.closing
                        && moment.as_mut().poll(cx).is_ready()
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

pub(crate) fn of_events(error: EventError<ModelError>) -> ModelError {
    match error {
        EventError::TooLarge => ModelError::Protocol(error.to_string()),
        EventError::Sink(error) => error,
    }
}

/// The pieces of a response, with a price on what it used.
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

fn priced(raw: &Deltas, price: Price) -> Deltas {
    use helve_core::ModelDelta;
    let mut deltas = Deltas::default();
    for delta in raw.iter() {
        deltas.push(match delta {
            ModelDelta::Usage(usage) if usage.cost.is_none() => ModelDelta::Usage(Usage { cost: price.of(&usage), ..usage }),
            other => other,
        });
    }
    deltas
}
