//! Runs the script: accepts connections, records requests and sends replies.

use std::any::Any;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time;

use super::failure::Failure;
use super::packet::{self, Body};
use super::reply::Reply;
use super::request::Request;
use super::script::Script;
use super::wire::{self, Wire};

/// A script and its progress.
pub(super) struct Stage {
    script: Script,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Number of model requests.
    model_requests: usize,
    requests: Vec<Request>,
}

impl Stage {
    pub fn new(script: Script) -> Self {
        Self { script, progress: Mutex::default() }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.progress().requests.clone()
    }

    pub fn replies_left(&self) -> usize {
        self.script.left(self.progress().model_requests)
    }

    /// Records a request and numbers it.
    fn record(&self, request: &mut Request) {
        let mut progress = self.progress();
        request.number = progress.model_requests;
        progress.model_requests += usize::from(is_model_request(request));
        progress.requests.push(request.clone());
    }

    fn reply(&self, request: &Request) -> Reply {
        if is_model_request(request) {
            // Not under the lock: the function of a script may take long or panic.
            let play = catch_unwind(AssertUnwindSafe(|| self.script.play(request)));
            return match play {
                Ok(Some(reply)) => reply,
                Ok(None) => Reply::failure(Failure::other(500, "script_ended", "the script has no more replies")),
                Err(panic) => Reply::failure(Failure::other(500, "script_panicked", format!("the script panicked: {}", message(&*panic)))),
            };
        }
        let Request { wire, method, path, .. } = request;
        if *wire != Wire::Other {
            Reply::failure(Failure::other(400, "invalid_request_error", "the request body is not a JSON object"))
        } else if method == "GET" && path.split('?').next().is_some_and(|path| path.ends_with("/models")) {
            Reply::raw(200, "application/json", [wire::list_models(request, self.script.models()).to_string()])
        } else {
            Reply::failure(Failure::other(404, "not_found", format!("unknown path: {method} {path}")))
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }
}

/// Serves connections. Dropping the future closes all of them.
pub(super) async fn serve(listener: TcpListener, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, stage.clone()));
                }
                // Mostly too many open files: some of them will be closed.
                Err(_) => time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, stage: Arc<Stage>) {
    // Chunks should arrive as they are sent. If the option cannot be set, they still arrive.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| respond(request, &stage));
    // An error here means that the client disconnected, or the script cut the connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: hyper::Request<Incoming>, stage: &Stage) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body = match &bytes[..] {
        b"" => Value::Null,
        bytes => serde_json::from_slice(bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(bytes))),
    };
    let mut request = Request::read(head.method.to_string(), head.uri.to_string(), &head.headers, body);
    stage.record(&mut request);
    Ok(packet::respond(stage.reply(&request), &request).await)
}

/// Returns whether the script handles the request: the path has a wire, and the body is a JSON object.
fn is_model_request(request: &Request) -> bool {
    request.wire != Wire::Other && request.body.is_object()
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
