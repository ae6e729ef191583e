//! What an owner of the server decides: who may come, and how much of everything there may be.

use std::time::Duration;

use secrecy::SecretString;

/// Who may come, and how much of everything there may be. The default is for clients on this machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names by which the server may be called, besides those of this machine and the address that it listens on: `example.com` with any
    /// port, `example.com:8080` with this one, `*` for all.
    pub hosts: Vec<String>,
    /// Web pages that may call it, besides those of this machine: `https://example.com`, `*` for all.
    pub origins: Vec<String>,
    /// Where it is set, callers over HTTP must have it.
    pub token: Option<SecretString>,
    /// The bytes of one request over HTTP.
    pub max_body: usize,
    /// The bytes of one line over stdio.
    pub max_line: usize,
    /// After how many lines over stdio that are no messages the server gives up.
    pub max_garbage: usize,
    /// Sessions of the older era. The one that was idle longest makes room for a new one.
    pub max_sessions: usize,
    /// After how long a session ends in which nothing happens.
    pub idle: Duration,
    /// Requests that are worked on at the same time. One more is refused. One client gets a quarter of them, and more only while half
    /// are free.
    pub max_requests: usize,
    /// Calls of one client over HTTP that run at the same time. More wait for their turn, so that calls of others are not behind them.
    pub calls_at_once: usize,
    /// Clients of the newer era that listen for changes at the same time. One more is refused. They are shared like requests.
    pub max_listeners: usize,
    /// Connections at the same time. For one more, one that waits for a request gives way. There should be more than sessions and listeners, which hold one each.
    pub max_connections: usize,
    /// After how long a silent stream says that it is still there; also how long the head of an answer waits for its first message.
    pub keep_alive: Duration,
    /// For how long a client may take nothing of what waits for it before its connection is closed.
    pub stall: Duration,
    /// How long what runs may take to end when the server stops, or when it was cancelled.
    pub grace: Duration,
    /// How many messages wait in a stream for a slow reader. What else is told to it then is dropped, but answers are not.
    pub queue: usize,
}

impl Default for Options {
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
