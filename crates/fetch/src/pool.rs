//! [`ConnectionPool`], the client for streamed responses.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::HeaderMap;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;

use crate::address::Reach;
use crate::connection::{Connection, ExchangeError, Io, connect_any};
use crate::error::{self, FetchError};
use crate::fetch::FetchOptions;
use crate::lookup::resolve;
use crate::streaming::{StreamLimits, StreamingResponse};
use crate::target::{Exchange, Target};

/// Maximum number of idle connections in the pool.
const MAX_IDLE: usize = 32;
/// Maximum idle time of a connection. Many servers close idle connections after about a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// Maximum idle time of a connection for a request that must not be sent twice. Some servers close idle connections after five seconds.
const SHORT_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// An HTTP client for streamed responses that reuses connections. Cheap to clone; clones share the connections.
#[derive(Clone, Default)]
pub struct ConnectionPool(Arc<Inner>);

#[derive(Default)]
struct Inner {
    options: FetchOptions,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    idle: Mutex<Vec<(Instant, Connection)>>,
}

impl std::fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionPool").finish_non_exhaustive()
    }
}

impl ConnectionPool {
    /// Creates an empty pool.
    #[must_use]
    pub fn new(options: FetchOptions) -> Self {
        Self(Arc::new(Inner { options, ..Inner::default() }))
    }

    /// Checks a URL and prepares the headers of all requests to it.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, or if `reach` does not allow its address.
    pub fn target(&self, url: &Url, headers: &HeaderMap, reach: Reach) -> Result<Target, FetchError> {
        Target::new(url, headers, reach, &self.0.options.user_agent)
    }

    /// Sends a request and returns the response as soon as its headers have arrived. Does not follow redirects.
    ///
    /// Dropping the future or the response closes the connection.
    ///
    /// # Errors
    /// Returns an error if the connection fails, if the address is not allowed, or if the headers do not arrive in time.
    pub async fn send(&self, target: &Target, exchange: &Exchange, limits: StreamLimits) -> Result<StreamingResponse, FetchError> {
        let Target { url, origin, reach, .. } = target;
        let of_hyper = |error: hyper::Error| FetchError::of_hyper(&error, origin.clone());
        let sent = async {
            let idle = if exchange.may_repeat { IDLE_TIMEOUT } else { SHORT_IDLE_TIMEOUT };
            if let Some(mut connection) = self.take(origin, *reach, idle) {
                // The server may have closed the idle connection. Then a new one is tried.
                match connection.exchange(exchange.request(target)).await {
                    Ok(response) => return Ok::<_, FetchError>((connection, response)),
                    Err(ExchangeError { error, was_sent: true }) if !exchange.may_repeat => return Err(of_hyper(error)),
                    Err(_) => {}
                }
            }
            let io = tokio::time::timeout(self.0.options.connect_timeout, self.connect(url, origin, *reach)).await;
            let io = io.map_err(|_| FetchError::Unreachable { origin: origin.clone(), reason: error::TIMED_OUT.to_owned() })??;
            let mut connection = Connection::open(io, origin.clone(), *reach).await?;
            let response = connection.exchange(exchange.request(target)).await.map_err(|failed| of_hyper(failed.error))?;
            Ok((connection, response))
        };
        let sent = tokio::time::timeout(limits.first_byte, sent).await;
        let (connection, response) = sent.map_err(|_| FetchError::Timeout { origin: origin.clone(), after: limits.first_byte })??;
        Ok(StreamingResponse::new(response, connection, self.clone(), limits))
    }

    async fn connect(&self, url: &Url, origin: &str, reach: Reach) -> Result<Io, FetchError> {
        let unreachable = |reason: String| FetchError::Unreachable { origin: origin.to_owned(), reason };
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or(80);
        let addresses: Vec<IpAddr> = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => resolve(&*self.0.options.lookup, host, reach).await.map_err(|error| match error.downcast() {
                Ok(refusal) => FetchError::Refused(*refusal),
                Err(error) => unreachable(error.to_string()),
            })?,
        };
        let socket = connect_any(&addresses, port).await.map_err(|error| unreachable(error::describe(&error)))?;
        // Nagle's algorithm would delay small requests.
        let _ = socket.set_nodelay(true);
        if url.scheme() != "https" {
            return Ok(Either::Left(socket));
        }
        let tls = self.0.tls.get_or_init(|| crate::client::tls().map(Arc::new).map_err(|error| error.to_string()));
        let tls = tls.as_ref().map_err(|reason| FetchError::Setup { reason: reason.clone() })?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| FetchError::BadUrl { reason: error.to_string() })?;
        let stream = TlsConnector::from(tls.clone()).connect(name, socket).await.map_err(|error| unreachable(error::describe(&error)))?;
        Ok(Either::Right(Box::new(stream)))
    }

    /// Takes the most recently used idle connection to `origin`, or `None` if all were idle for longer than `idle_timeout`.
    fn take(&self, origin: &str, reach: Reach, idle_timeout: Duration) -> Option<Connection> {
        let mut idle = self.0.idle.lock();
        idle.retain(|(since, _)| since.elapsed() < IDLE_TIMEOUT);
        let fits = |(since, connection): &(Instant, Connection)| {
            connection.origin == origin && connection.reach == reach && since.elapsed() < idle_timeout
        };
        let index = idle.iter().rposition(fits)?;
        Some(idle.remove(index).1)
    }

    /// Returns an idle connection to the pool, or closes it if the pool is full.
    pub(crate) fn put_back(&self, connection: Connection) {
        let mut idle = self.0.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push((Instant::now(), connection));
        }
    }
}
