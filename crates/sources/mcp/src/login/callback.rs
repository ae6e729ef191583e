//! The callback of a login: a listener on this machine that waits for one request of the browser.
//!
//! Every web page that the person has open can send requests to the listener, so it rejects requests without the `state` of the login.

use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::error::AuthError;

const PATH: &str = "/callback";
/// Maximum size of a request head in bytes.
const HEAD: usize = 16 << 10;
/// Timeout of one request.
const REQUEST: Duration = Duration::from_secs(10);
/// Maximum number of open connections. Browsers open connections that they never use.
const CONNECTIONS: usize = 16;

/// Listens for the callback of the browser.
pub(super) struct CallbackListener {
    socket: TcpListener,
    port: u16,
}

/// The query parameters of a callback.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Callback {
    pub(super) code: Option<String>,
    pub(super) iss: Option<String>,
    pub(super) error: Option<String>,
    pub(super) error_description: Option<String>,
}

impl CallbackListener {
    /// Listens on the first of these ports that is free; 0 stands for any free port.
    pub(super) async fn bind(ports: &[u16]) -> Result<Self, AuthError> {
        let mut reason = String::new();
        for port in ports {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await.and_then(|socket| Ok((socket.local_addr()?.port(), socket))) {
                Ok((port, socket)) => return Ok(Self { socket, port }),
                Err(error) => reason = format!("cannot listen on 127.0.0.1:{port}: {error}"),
            }
        }
        Err(AuthError::browser(reason))
    }

    /// Returns the URL to which the issuer redirects the browser.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Returns the port in a URL from [`Self::redirect_uri`].
    pub(super) fn port_of(redirect_uri: &str) -> Option<u16> {
        redirect_uri.strip_prefix("http://127.0.0.1:")?.strip_suffix(PATH)?.parse().ok()
    }

    /// Waits for a callback with this `state`, and ignores other requests.
    pub(super) async fn wait(&self, state: &str) -> Callback {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                Ok((stream, _)) = self.socket.accept(), if open.len() < CONNECTIONS => open.push(timeout(REQUEST, serve(stream, state))),
                Some(done) = open.next() => {
                    if let Ok(Some(returned)) = done {
                        return returned;
                    }
                }
                // The system has no free file descriptors at the moment.
                else => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

/// Handles one request. Returns the callback, or `None` if the request is not the expected callback.
async fn serve(mut stream: TcpStream, state: &str) -> Option<Callback> {
    let target = read_target(&mut stream).await;
    let returned = match &target {
        Ok(target) => read_return(target, state),
        Err(status) => Err(*status),
    };
    let page = match &returned {
        Ok(_) => page("200 OK", "Back to Helve", "Login received. You can close this window.", "Helve 已收到回复，可以关闭此窗口。"),
        Err(status) => page(
            status,
            "Unexpected request",
            "Helve does not expect this request. You can close this window.",
            "Helve 并未等待此请求，可以关闭此窗口。",
        ),
    };
    // The callback is valid even if the browser does not read the page.
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    returned.ok()
}

/// Reads the target of a request, such as `/callback?code=1`. For an invalid request, returns the status of the response.
async fn read_target(stream: &mut TcpStream) -> Result<String, &'static str> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let mut piece = [0; 1024];
        let count = stream.read(&mut piece).await.map_err(|_| "400 Bad Request")?;
        head.extend_from_slice(&piece[..count]);
        if head.windows(4).any(|window| window == b"\r\n\r\n") {
            break;
        }
        if count == 0 {
            return Err("400 Bad Request");
        }
        if head.len() > HEAD {
            return Err("431 Request Header Fields Too Large");
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().and_then(|line| str::from_utf8(line).ok()).ok_or("400 Bad Request")?;
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["GET", target, "HTTP/1.1" | "HTTP/1.0"] => Ok(target.to_owned()),
        [_, _, "HTTP/1.1" | "HTTP/1.0"] => Err("405 Method Not Allowed"),
        _ => Err("400 Bad Request"),
    }
}

fn read_return(target: &str, state: &str) -> Result<Callback, &'static str> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != PATH {
        return Err("404 Not Found");
    }
    let mut returned = Callback::default();
    let mut known = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = match &*name {
            "state" => &mut known,
            "code" => &mut returned.code,
            "iss" => &mut returned.iss,
            "error" => &mut returned.error,
            "error_description" => &mut returned.error_description,
            _ => continue,
        };
        // A parameter that occurs twice is ambiguous.
        if field.replace(value.into_owned()).is_some() {
            return Err("400 Bad Request");
        }
    }
    if known.is_some_and(|known| is_same(&known, state)) { Ok(returned) } else { Err("400 Bad Request") }
}

/// Compares two texts in constant time.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

fn page(status: &str, title: &str, english: &str, chinese: &str) -> String {
    let body = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <body>\
         <p lang=\"en\">{english}</p><p lang=\"zh\">{chinese}</p>\n"
    );
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = "the-state-of-this-login";

    async fn say(port: u16, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("a connection");
        // The listener may respond and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(target: &str) -> Vec<u8> {
        format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").into_bytes()
    }

    #[tokio::test]
    async fn only_who_knows_the_state_is_heard() {
        let listener = CallbackListener::bind(&[0]).await.expect("a port");
        let port = listener.port;
        assert_eq!(CallbackListener::port_of(&listener.redirect_uri()), Some(port));
        let idle = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("a connection");
        let knocks = async {
            for (bytes, status) in [
                (get("/"), "404"),
                (get("/callback/x?state=the-state-of-this-login"), "404"),
                (get("/callback"), "400"),
                (get("/callback?code=stolen-code"), "400"),
                (get("/callback?code=stolen-code&state=wrong"), "400"),
                (get("/callback?code=stolen-code&state=the-state-of-this-logim"), "400"),
                (get("/callback?code=a&code=b&state=the-state-of-this-login"), "400"),
                (get("/callback?code=a&state=the-state-of-this-login&state=x"), "400"),
                (b"POST /callback?code=a&state=the-state-of-this-login HTTP/1.1\r\n\r\n".to_vec(), "405"),
                (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n".to_vec(), "400"),
                (b"GET /callback HTTP/1.1 and more\r\n\r\n".to_vec(), "400"),
                (b"\xff\xfe\r\n\r\n".to_vec(), "400"),
            ] {
                let answer = say(port, &bytes).await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {answer}", String::from_utf8_lossy(&bytes));
                assert!(!answer.contains("stolen"), "nothing is echoed: {answer}");
            }
            let _ = say(port, &vec![b'x'; HEAD * 2]).await;
            say(port, &get("/callback?code=the%20code&state=the-state-of-this-login&iss=https%3A%2F%2Fx.example&more=1")).await
        };
        let (returned, page) = tokio::join!(listener.wait(STATE), knocks);
        drop(idle);
        assert_eq!(returned, Callback { code: Some("the code".into()), iss: Some("https://x.example".into()), ..Callback::default() });
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("close this window") && page.contains("关闭此窗口"), "{page}");
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_passed_over() {
        let first = CallbackListener::bind(&[0]).await.expect("a port");
        assert!(CallbackListener::bind(&[first.port]).await.is_err());
        assert_ne!(CallbackListener::bind(&[first.port, 0]).await.expect("another").port, first.port);
        assert_eq!(CallbackListener::port_of("http://127.0.0.1:1/other"), None);
    }
}
