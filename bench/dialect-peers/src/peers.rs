//! One face for all parsers: read a whole text, or a text in deltas.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_dialect::{Dialect, Mode, EventKind, Scanner, ToolTable};
use serde_json::{Map, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Hermes,
    Coder,
}

/// Where the results go: counted when timed, collected when checked.
pub trait Sink {
    fn text(&mut self, text: &str);
    fn name(&mut self, index: usize, name: &str);
    fn arguments(&mut self, index: usize, more: &str);
    fn whole(&mut self, name: &str, arguments: &Map<String, Value>);
}

#[derive(Default)]
pub struct Count(pub usize);
impl Sink for Count {
    fn text(&mut self, text: &str) {
        self.0 += text.len();
    }
    fn name(&mut self, index: usize, name: &str) {
        self.0 += index + name.len();
    }
    fn arguments(&mut self, index: usize, more: &str) {
        self.0 += index + more.len();
    }
    fn whole(&mut self, name: &str, arguments: &Map<String, Value>) {
        self.0 += name.len() + arguments.len();
    }
}

#[derive(Default)]
pub struct Collect {
    pub text: String,
    pub calls: Vec<(String, String)>,
    pub pieces: usize,
}
impl Collect {
    fn at(&mut self, index: usize) -> &mut (String, String) {
        while self.calls.len() <= index {
            self.calls.push(Default::default());
        }
        &mut self.calls[index]
    }
}
impl Sink for Collect {
    fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }
    fn name(&mut self, index: usize, name: &str) {
        self.at(index).0.push_str(name);
    }
    fn arguments(&mut self, index: usize, more: &str) {
        self.pieces += 1;
        self.at(index).1.push_str(more);
    }
    fn whole(&mut self, name: &str, arguments: &Map<String, Value>) {
        self.calls.push((name.to_owned(), serde_json::to_string(arguments).unwrap()));
    }
}

/// Stops a stream that takes too long.
pub struct Deadline {
    end: Instant,
    seen: usize,
    pub over: bool,
}
impl Deadline {
    pub fn after(seconds: u64) -> Self {
        Self { end: Instant::now() + Duration::from_secs(seconds), seen: 0, over: false }
    }
    /// Looked at for each delta; the clock is read for every 64th.
    pub fn passed(&mut self) -> bool {
        self.seen += 1;
        self.over = self.over || (self.seen % 64 == 0 && Instant::now() > self.end);
        self.over
    }
    pub fn seen(&self) -> usize {
        self.seen
    }
}

pub trait Peer {
    fn name(&self) -> &'static str;
    fn reads(&self, form: Form) -> bool;
    /// Whether only the small calls tell something about it.
    fn small_only(&self) -> bool {
        false
    }
    fn whole(&mut self, form: Form, text: &str, sink: &mut dyn Sink);
    /// Makes ready what is not timed, and gives what is.
    fn stream<'a>(&'a mut self, form: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a>;
}

pub struct Helve {
    dialects: [Dialect; 2],
    tools: [Arc<ToolTable>; 2],
    mode: Mode,
    name: &'static str,
}
impl Helve {
    pub fn new(name: &'static str, dialects: [&str; 2], mode: Mode, tools: &[(String, Value)]) -> Self {
        Self {
            dialects: dialects.map(|name| Dialect::named(name).unwrap()),
            tools: [Arc::new(ToolTable::unknown()), Arc::new(ToolTable::new(tools.iter().cloned()))],
            mode,
            name,
        }
    }
    fn scanner(&self, form: Form) -> Scanner {
        let place = usize::from(form == Form::Coder);
        Scanner::new(self.dialects[place].clone(), self.mode, self.tools[place].clone())
    }
}
fn said(event: EventKind<'_>, sink: &mut dyn Sink) {
    match event {
        EventKind::Text(text) => sink.text(text),
        EventKind::Call(call) => sink.whole(&call.name, &call.arguments),
        EventKind::Malformed(malformed) => sink.text(&malformed.raw),
        other => {
            std::hint::black_box(&other);
        }
    }
}
impl Peer for Helve {
    fn name(&self) -> &'static str {
        self.name
    }
    fn reads(&self, _: Form) -> bool {
        true
    }
    fn whole(&mut self, form: Form, text: &str, sink: &mut dyn Sink) {
        let mut scanner = self.scanner(form);
        scanner.push_str(text, &mut |event| said(event.kind, sink));
        scanner.finish(&mut |event| said(event.kind, sink));
    }
    fn stream<'a>(&'a mut self, form: Form, deltas: &'a [&'a str]) -> Box<dyn FnOnce(&mut dyn Sink, &mut Deadline) + 'a> {
        Box::new(move |sink, deadline| {
            let mut scanner = self.scanner(form);
            for delta in deltas {
                if deadline.passed() {
                    return;
                }
                scanner.push_str(delta, &mut |event| said(event.kind, sink));
            }
            scanner.finish(&mut |event| said(event.kind, sink));
        })
    }
}

#[cfg(feature = "smg")]
pub use smg::Smg;
#[cfg(feature = "smg")]
mod smg;

#[cfg(feature = "dynamo")]
pub use dynamo::Dynamo;
#[cfg(feature = "dynamo")]
mod dynamo;

#[cfg(feature = "dynamo2")]
pub use dynamo2::Dynamo2;
#[cfg(feature = "dynamo2")]
mod dynamo2;

#[cfg(feature = "adk")]
pub use adk::Adk;
#[cfg(feature = "adk")]
mod adk;
