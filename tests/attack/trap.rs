//! A server that must not be reached: it writes down whatever is sent to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A server on loopback that answers everything with an empty JSON object.
pub struct Trap {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Trap {
    pub fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, seen) = (listener.local_addr().expect("an address"), Arc::<Mutex<Vec<String>>>::default());
        let written = seen.clone();
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let written = written.clone();
                thread::spawn(move || serve(stream, &written));
            }
        });
        Self { address, seen }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// An address of the trap.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What was sent, a connection each.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(mut stream: std::net::TcpStream, written: &Mutex<Vec<String>>) {
    let index = {
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        written.push(String::new());
        written.len() - 1
    };
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    let mut request = Vec::new();
    let mut block = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut block) {
        request.extend_from_slice(&block[..length]);
        let text = String::from_utf8_lossy(&request).into_owned();
        written.lock().unwrap_or_else(PoisonError::into_inner)[index].clone_from(&text);
        if is_whole(&text) {
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            return;
        }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    body.len() >= length.unwrap_or(0)
}
