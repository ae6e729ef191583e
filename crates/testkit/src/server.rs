//! A scripted server that acts as a model provider, on loopback only.

mod delivery;
mod failure;
mod output;
mod packet;
mod reply;
mod request;
mod script;
mod sse;
mod stage;
mod wire;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;

use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

pub use failure::Failure;
pub use output::{Call, CallPieces};
pub use reply::Reply;
pub use request::{Request, Turn};
pub use script::Script;
use stage::Stage;
pub use wire::Wire;

/// A model provider that responds as scripted. It stops when it is dropped.
///
/// It supports four wire formats, recognised by the end of the path; the rest of the path is ignored. `GET …/models` lists its models.
///
/// | wire | base URL | endpoint |
/// |---|---|---|
/// | [`Wire::OpenAiChat`] | [`url`](Self::url) | `POST {url}/chat/completions` |
/// | [`Wire::OpenAiResponses`] | [`url`](Self::url) | `POST {url}/responses` |
/// | [`Wire::Anthropic`] | [`origin`](Self::origin) or [`url`](Self::url) | `POST {origin}/v1/messages`, `POST {url}/messages` |
/// | [`Wire::Gemini`] | either | `POST {origin}/v1beta/models/NAME:generateContent` |
///
/// ```
/// use helve_testkit::{ModelServer, Reply, Script};
/// use serde_json::json;
///
/// let script = Script::new()
///     .reply(Reply::calls([("add", json!({"a": 1, "b": 2}))]).with_text("Let me see."))
///     .reply(Reply::text("It is 3."));
/// let server = ModelServer::start_blocking(script);
/// assert!(server.url().starts_with("http://127.0.0.1:"));
/// assert_eq!((server.requests().len(), server.replies_left()), (0, 2));
/// ```
#[must_use = "the server ends when it is dropped"]
pub struct ModelServer {
    url: String,
    stage: Arc<Stage>,
    owner: Owner,
}

/// Where the server runs, and how it is stopped.
enum Owner {
    Task(AbortHandle),
    /// The thread ends when the sender is dropped.
    Thread(Option<(oneshot::Sender<()>, thread::JoinHandle<()>)>),
}

impl ModelServer {
    /// Starts a server on the caller's runtime, whose clock it uses.
    ///
    /// # Panics
    /// If no loopback port is free.
    #[expect(clippy::expect_used, reason = "a test without its server should stop")]
    pub async fn start(script: impl Into<Script>) -> Self {
        let stage = Arc::new(Stage::new(script.into()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port of the loopback");
        let address = listener.local_addr().expect("the address of the listener");
        let task = tokio::spawn(stage::serve(listener, stage.clone()));
        Self::at(address, stage, Owner::Task(task.abort_handle()))
    }

    /// Starts a server on its own thread, for tests that are not async.
    ///
    /// # Panics
    /// If no loopback port is free, or the thread cannot be started.
    #[expect(clippy::expect_used, reason = "a test without its server should stop")]
    pub fn start_blocking(script: impl Into<Script>) -> Self {
        let stage = Arc::new(Stage::new(script.into()));
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback");
        let address = listener.local_addr().expect("the address of the listener");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let (stop, stopped) = oneshot::channel();
        let played = stage.clone();
        let work = move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener of the runtime");
                tokio::select! {
                    () = stage::serve(listener, played) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name("model-server".to_owned()).spawn(work).expect("a thread");
        Self::at(address, stage, Owner::Thread(Some((stop, thread))))
    }

    fn at(address: SocketAddr, stage: Arc<Stage>, owner: Owner) -> Self {
        Self { url: format!("http://{address}/v1"), stage, owner }
    }

    /// The base URL of the `OpenAI` wires: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL without a path: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.url.trim_end_matches("/v1")
    }

    /// All requests so far, in order of arrival, including model lists and unknown paths.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.stage.requests()
    }

    /// Number of scripted replies not sent yet.
    #[must_use]
    pub fn replies_left(&self) -> usize {
        self.stage.replies_left()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        match &mut self.owner {
            Owner::Task(task) => task.abort(),
            Owner::Thread(thread) => {
                if let Some((stop, thread)) = thread.take() {
                    drop(stop);
                    // A panic of the thread was reported already.
                    let _ = thread.join();
                }
            }
        }
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer").field("url", &self.url).finish_non_exhaustive()
    }
}
