//! Tools of MCP servers: a call beside bare rmcp, by turns against the same server; the catalogue of ten servers; and their start.

mod many;
pub mod server;
mod sides;

use std::time::{Duration, Instant};

use self::server::Kind;
use self::sides::{HttpServer, ModelEndpoint, Side};
use crate::cpu;
use crate::report::Report;

const ROUNDS: u32 = 150;
/// Calls of one side in one round.
const CALLS: u32 = 8;
/// How much more than bare rmcp a call may take, in microseconds.
const MORE: f64 = 100.0;
/// How much more CPU time.
const MORE_CPU: f64 = 150.0;

/// How a server speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// As the command has it.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Measures servers.
pub fn measure(report: &mut Report) {
    let runtime = runtime();
    runtime.block_on(async {
        for (era, version) in [(Era::Legacy, "2025-11-25"), (Era::Modern, "2026-07-28")] {
            let kind = Kind::plain(era);
            calls(report, kind, &ModelEndpoint::Stdio, &format!("stdio, {version}")).await;
            let (_server, place) = HttpServer::start(kind);
            calls(report, kind, &place, &format!("HTTP, {version}")).await;
        }
        many::catalogue(report).await;
        many::start(report).await;
    });
}

/// What the calls of one side took.
#[derive(Default)]
struct Taken {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Taken {
    /// The median, in microseconds.
    fn wall(&mut self) -> f64 {
        micros(median(&mut self.wall))
    }

    /// The CPU time of a call in this process, in microseconds.
    fn cpu(&mut self) -> f64 {
        micros(median(&mut self.cpu)) / f64::from(CALLS)
    }
}

async fn calls(report: &mut Report, kind: Kind, place: &ModelEndpoint, name: &str) {
    let sides = [Side::bare(kind, place).await, Side::client(kind, place).await, Side::layers(kind, place).await];
    let mut taken: [Taken; 3] = Default::default();
    // By turns, so that what else the machine does disturbs all alike. The first round warms up.
    for round in 0..=ROUNDS {
        for (side, taken) in sides.iter().zip(&mut taken) {
            let (before, mut walls) = (cpu::of_process(), Vec::new());
            for _ in 0..CALLS {
                let begun = Instant::now();
                side.call().await;
                walls.push(begun.elapsed());
            }
            // What a call leaves to be done afterwards counts too.
            tokio::time::sleep(Duration::from_millis(1)).await;
            if round > 0 {
                taken.wall.append(&mut walls);
                taken.cpu.push(cpu::of_process().saturating_sub(before));
            }
        }
    }
    let [mut bare, mut client, mut layers] = taken;
    let (wall, spent) = (("bare rmcp", bare.wall()), ("bare rmcp", bare.cpu()));
    let (most, most_cpu) = ((wall.1 + MORE).round(), (spent.1 + MORE_CPU).round());
    report.row(&format!("a call over {name}, through all layers (wall clock, the median)"), layers.wall(), "µs", wall, Some(most));
    report.row("the same, CPU of this side, the median", layers.cpu(), "µs", spent, Some(most_cpu));
    report.row("the same by Helve's client alone (wall clock, the median)", client.wall(), "µs", wall, None);
    report.row("the same by Helve's client alone, CPU of this side, the median", client.cpu(), "µs", spent, None);
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
