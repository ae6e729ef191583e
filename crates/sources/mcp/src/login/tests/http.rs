//! As much HTTP as the tests of logins need: a server that records what it is asked, and one exchange of a client.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use helve_fetch::Url;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One request as it came.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    /// Of the address, and of a form that was sent.
    pub(super) fields: HashMap<String, String>,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

impl Seen {
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self { body: body.to_string(), ..Self::status(status) }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A server that lives as long as this does.
pub(super) struct Server {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server. It hears its own address with each request.
    pub(super) async fn start(answer: impl Fn(&str, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("http://127.0.0.1:{}", listener.local_addr().expect("an address").port());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (own, log, answer) = (url.clone(), seen.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (own, log, answer) = (own.clone(), log.clone(), answer.clone());
                tokio::spawn(async move {
                    let Some(request) = read(&mut stream).await else { return };
                    log.lock().expect("a log").push(request.clone());
                    let reply = answer(&own, &request);
                    let headers: String = reply.headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
                    let (status, length) = (reply.status, reply.body.len());
                    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
                    let _ = stream.write_all((head + &reply.body).as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { url, seen, task }
    }

    /// The requests for a path, in order.
    pub(super) fn seen(&self, path: &str) -> Vec<Seen> {
        self.seen.lock().expect("a log").iter().filter(|seen| seen.path == path).cloned().collect()
    }

    /// All paths that were asked for, in order.
    pub(super) fn paths(&self) -> Vec<String> {
        self.seen.lock().expect("a log").iter().map(|seen| seen.path.clone()).collect()
    }

    /// Everything that was ever sent here, as text.
    pub(super) fn heard(&self) -> String {
        format!("{:?}", self.seen.lock().expect("a log"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One exchange without redirects.
pub(super) async fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Result<Reply, String> {
    let url: Url = url.parse().map_err(|_| "no address")?;
    let place = (url.host_str().unwrap_or_default(), url.port().unwrap_or(80));
    let mut stream = TcpStream::connect(place).await.map_err(|error| error.to_string())?;
    let headers: String = headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
    let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let head = format!("{method} {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("no status")?;
    let mut reply = Reply { body: body.to_owned(), ..Reply::status(status) };
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        match name {
            "location" => reply = reply.with("location", value),
            "www-authenticate" => reply = reply.with("www-authenticate", value),
            _ => {}
        }
    }
    Ok(reply)
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            break (head.to_owned(), length.unwrap_or(0));
        }
    };
    while bytes.len() < head.len() + 4 + length {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
    }
    let body = String::from_utf8_lossy(&bytes[head.len() + 4..]).into_owned();
    let mut line = head.lines().next()?.split(' ');
    let (method, target) = (line.next()?.to_owned(), line.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let headers: HashMap<_, _> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let is_form = headers.get("content-type").is_some_and(|kind| kind == "application/x-www-form-urlencoded");
    let form = if is_form { body.as_str() } else { "" };
    let fields = form_urlencoded::parse(query.as_bytes()).chain(form_urlencoded::parse(form.as_bytes()));
    let fields = fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    Some(Seen { method, path: path.to_owned(), fields, headers, body })
}
