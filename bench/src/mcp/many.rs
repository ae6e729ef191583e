//! Ten servers: their catalogue while nothing changes, and how long they all take to start.

use std::hint::black_box;
use std::time::{Duration, Instant};

use helve::catalogue::{Catalogue, Toolkit, View};
use serde_json::json;

use super::server::Kind;
use super::sides::{ModelEndpoint, connect};
use super::{Era, median, micros};
use crate::report::Report;

const SERVERS: usize = 10;
const TOOLS: usize = 20;
const LOOKS: usize = 2_000;
const STARTS: usize = 3;
/// How long the slowest server waits before its first word.
const SLOW: Duration = Duration::from_millis(500);

fn begin(catalogue: &Catalogue, number: usize, kind: Kind) {
    catalogue.add_source(connect(kind, &ModelEndpoint::Stdio, &format!("server{number}")));
}

/// What it takes to see what there is, while all servers are connected and none has changed.
pub async fn catalogue(report: &mut Report) {
    let catalogue = Catalogue::new();
    (0..SERVERS).for_each(|number| begin(&catalogue, number, Kind { tools: TOOLS, ..Kind::plain(Era::Modern) }));
    catalogue.settled().await;
    let seen = catalogue.snapshot(&View::default());
    assert_eq!(seen.len(), SERVERS * TOOLS);
    let timed = |work: &dyn Fn()| {
        let mut times: Vec<_> = (0..LOOKS).map(|_| time(work)).collect();
        micros(median(&mut times))
    };
    let bare = timed(&|| {
        let list: Vec<_> = seen
            .iter()
            .map(|entry| json!({"name": entry.model_name(), "description": entry.spec().description(), "parameters": entry.spec().input().value()}))
            .collect();
        black_box(serde_json::to_string(&list).expect("JSON"));
    });
    let cached = timed(&|| {
        let toolkit = Toolkit::everything(&catalogue.snapshot(&View::default()));
        black_box(toolkit.model_list().json());
    });
    let what = "10 servers with 20 tools each, nothing changed: snapshot and model list (wall clock, the median)";
    report.row(what, cached, "µs", ("serialising the list with serde_json", bare), Some(100.0));
}

fn time(work: &dyn Fn()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// How much longer ten servers take than the slowest of them.
pub async fn start(report: &mut Report) {
    let (mut alone, mut all) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        alone.push(started(1).await);
        all.push(started(SERVERS).await);
    }
    let (alone, all) = (median(&mut alone).as_secs_f64() * 1e3, median(&mut all).as_secs_f64() * 1e3);
    report.row(
        "start with 10 servers, beyond the slowest (wall clock, the median)",
        all - alone,
        "ms",
        ("the slowest alone", alone),
        Some(50.0),
    );
}

/// How long it takes until so many servers are connected, of which one is slow.
async fn started(servers: usize) -> Duration {
    let begun = Instant::now();
    let catalogue = Catalogue::new();
    for number in 0..servers {
        let delay = if number == 0 { SLOW } else { Duration::ZERO };
        begin(&catalogue, number, Kind { tools: TOOLS, delay, ..Kind::plain(Era::Modern) });
    }
    catalogue.settled().await;
    let taken = begun.elapsed();
    assert_eq!(catalogue.snapshot(&View::default()).len(), servers * TOOLS);
    taken
}
