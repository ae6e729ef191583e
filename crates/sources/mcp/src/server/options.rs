//! Options of the server: who may connect, and limits.

use std::time::Duration;

use secrecy::SecretString;

/// Who may connect, and limits. The default is for clients on this machine.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Accepted host names, besides those of this machine and the address that the server listens on: `example.com` with any port,
    /// `example.com:8080` with this one, `*` for all.
    pub hosts: Vec<String>,
    /// Accepted web origins, besides those of this machine: `https://example.com`, `*` for all.
    pub origins: Vec<String>,
    /// The bearer token that HTTP clients must send; `None` requires none.
    pub token: Option<SecretString>,
    /// Maximum size of one HTTP request, in bytes.
    pub max_body: usize,
    /// Maximum length of one line over stdio, in bytes.
    pub max_line: usize,
    /// Number of invalid lines over stdio after which the server gives up.
    pub max_garbage: usize,
    /// Maximum number of legacy sessions. A new one replaces the session that was idle longest.
    pub max_sessions: usize,
    /// Timeout after which an idle session ends.
    pub idle: Duration,
    /// Maximum number of requests at the same time; more are refused. One client gets a quarter of them, and more only while half are
    /// free.
    pub max_requests: usize,
    /// Maximum number of calls of one HTTP client that run at the same time. More are queued, so that they do not delay other clients.
    pub calls_at_once: usize,
    /// Maximum number of modern clients that listen for changes at the same time; more are refused. They are shared like requests.
    pub max_listeners: usize,
    /// Maximum number of connections. A new one displaces an idle one. It should exceed sessions plus listeners, which use one each.
    pub max_connections: usize,
    /// Interval of keep-alive comments on a silent stream, and how long a response head waits for its first message.
    pub keep_alive: Duration,
    /// Timeout after which a connection is closed because the client does not read.
    pub stall: Duration,
    /// Grace period for running requests when the server stops or a request is cancelled.
    pub grace: Duration,
    /// Maximum number of queued messages for a slow reader. Further notifications are dropped; responses are not.
    pub queue: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            token: None,
            max_body: 4 << 20,
            max_line: 16 << 20,
            max_garbage: 100,
            max_sessions: 1_000,
            idle: Duration::from_mins(30),
            max_requests: 256,
            calls_at_once: 32,
            max_listeners: 1_000,
            max_connections: 4_000,
            keep_alive: Duration::from_secs(15),
            stall: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            queue: 256,
        }
    }
}
