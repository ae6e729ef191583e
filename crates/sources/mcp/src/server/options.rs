//! Options of the server: access and limits.

use std::time::Duration;

use secrecy::SecretString;

/// Options of a server: access and limits. The default allows only clients on this machine.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The accepted host names, in addition to those of this machine and the address on which the server listens: `example.com` with any
    /// port, `example.com:8080` with this port only, or `*` for all.
    pub hosts: Vec<String>,
    /// The accepted web origins, in addition to those of this machine: an origin such as `https://example.com`, or `*` for all.
    pub origins: Vec<String>,
    /// The bearer token that HTTP clients must send; with `None`, no token is required.
    pub token: Option<SecretString>,
    /// Maximum size of the body of an HTTP request in bytes.
    pub max_body: usize,
    /// Maximum length of a line over stdio in bytes.
    pub max_line: usize,
    /// Number of invalid lines over stdio after which the server disconnects the client.
    pub max_garbage: usize,
    /// Maximum number of legacy sessions. A new session replaces the one that has been idle the longest.
    pub max_sessions: usize,
    /// Time after which an idle session ends.
    pub idle: Duration,
    /// Maximum number of concurrent requests; further requests are rejected. One client may use a quarter of them, and more while at least
    /// half are free.
    pub max_requests: usize,
    /// Maximum number of concurrent tool calls of one HTTP client. Further calls wait, so that they do not delay other clients.
    pub calls_at_once: usize,
    /// Maximum number of modern clients that listen for changes; further ones are rejected. Shared among clients like `max_requests`.
    pub max_listeners: usize,
    /// Maximum number of connections. A new connection displaces a waiting one. Should exceed the sum of `max_sessions` and
    /// `max_listeners`, which use one connection each.
    pub max_connections: usize,
    /// Interval between keep-alive comments on a silent stream. Also the maximum time that the head of a response is delayed.
    pub keep_alive: Duration,
    /// Time after which a connection is closed because the client does not read.
    pub stall: Duration,
    /// Grace period for running requests when the server stops or a request is cancelled.
    pub grace: Duration,
    /// Maximum number of queued messages for a client that reads slowly. Further notifications are dropped; responses are not.
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
