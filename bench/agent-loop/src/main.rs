//! The agent of the README on the work of the peer benchmark: same arguments, same last line as its other runners.

#![allow(clippy::print_stdout, reason = "the last line is the result")]
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that goes wrong should stop")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "figures for people")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use helve::prelude::*;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

const SYSTEM: &str = "You are a calculator. Use the tools.";
const PROMPT: &str = "Please do the work with the tools and answer.";

/// Add two integers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Return the text unchanged.
#[tool]
async fn echo(text: String) -> String {
    text
}

struct Arguments {
    base_url: String,
    scenario: String,
    runs: u64,
    warmup: u64,
    concurrency: usize,
    most: Duration,
    threads: usize,
}

impl Arguments {
    fn read() -> Self {
        let mut read = Self {
            base_url: "http://127.0.0.1:8080/v1".into(),
            scenario: "s1".into(),
            runs: 100,
            warmup: 5,
            concurrency: 1,
            most: Duration::from_secs(30),
            threads: 1,
        };
        let mut arguments = std::env::args().skip(1);
        while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
            match name.as_str() {
                "--base-url" => read.base_url = value,
                "--scenario" => read.scenario = value,
                "--runs" => read.runs = value.parse().expect("a number"),
                "--warmup" => read.warmup = value.parse().expect("a number"),
                "--concurrency" => read.concurrency = value.parse().expect("a number"),
                "--max-seconds" => read.most = Duration::from_secs_f64(value.parse().expect("seconds")),
                "--threads" => read.threads = value.parse().expect("a number"),
                other => panic!("unknown argument {other}"),
            }
        }
        read
    }

    fn streams(&self) -> bool {
        self.scenario == "s4" || self.scenario.ends_with('d')
    }
}

/// One agent; each run is a conversation of its own.
struct Session {
    agent: Agent,
    streams: bool,
}

impl Session {
    fn open(arguments: &Arguments) -> Self {
        let model = HttpModel::openai_compatible(&arguments.base_url, Some("sk-mock".into()), &arguments.scenario).expect("a model");
        let options = AgentOptions::default().system_prompt(SYSTEM);
        let mut agent = Agent::new(model).with_options(options);
        agent.register_tool(add::tool()).expect("a tool");
        agent.register_tool(echo::tool()).expect("a tool");
        Self { agent, streams: arguments.streams() }
    }

    /// One more conversation with the same model and tools.
    fn fork(&self) -> Self {
        Self { agent: self.agent.fork(), streams: self.streams }
    }

    async fn run(&mut self) -> Result<String, String> {
        self.agent.reset();
        if !self.streams {
            return self.agent.run(PROMPT).await.map(|answer| answer.text).map_err(|error| error.to_string());
        }
        let mut stream = self.agent.run_stream(PROMPT).await.map_err(|error| error.to_string())?;
        let mut text = String::new();
        while let Some(piece) = stream.next_text().await {
            text.push_str(&piece.map_err(|error| error.to_string())?);
        }
        Ok(text)
    }
}

fn check(scenario: &str, text: &str) -> Option<String> {
    let wanted = match scenario.trim_end_matches('d') {
        "s1" => "The answer is 5.",
        "s2" => "All 8 sums are ready.",
        "s3" => "The chain of 10 is done.",
        "s5" => "Echoed the large text.",
        _ => return (text.trim_end().len() != 7999 && text.len() != 8000).then(|| format!("stream length {}", text.len())),
    };
    (!text.contains(wanted)).then(|| format!("unexpected final text {text:.80}"))
}

#[derive(Default)]
struct Measured {
    nanos: Vec<u128>,
    errors: Vec<String>,
}

async fn phase(sessions: Vec<Session>, arguments: &Arc<Arguments>, runs: u64) -> (Vec<Session>, Measured) {
    let (next, deadline) = (Arc::new(AtomicU64::new(0)), Instant::now() + arguments.most);
    let tasks: Vec<_> = sessions
        .into_iter()
        .map(|mut session| {
            let (next, arguments) = (next.clone(), arguments.clone());
            tokio::spawn(async move {
                let mut measured = Measured::default();
                while next.fetch_add(1, Ordering::Relaxed) < runs && Instant::now() < deadline && measured.errors.len() <= 20 {
                    let begun = Instant::now();
                    match session.run().await {
                        Ok(text) => {
                            measured.nanos.push(begun.elapsed().as_nanos());
                            measured.errors.extend(check(&arguments.scenario, &text));
                        }
                        Err(error) => measured.errors.push(error),
                    }
                }
                (session, measured)
            })
        })
        .collect();
    let (mut back, mut all) = (Vec::new(), Measured::default());
    for task in tasks {
        let (session, mut measured) = task.await.expect("a session");
        back.push(session);
        all.nanos.append(&mut measured.nanos);
        all.errors.append(&mut measured.errors);
    }
    (back, all)
}

fn since_spawn_ms() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as f64;
    let spawned = std::env::var("BENCH_T0_NS").ok().and_then(|text| text.parse::<f64>().ok());
    spawned.map_or(f64::NAN, |spawned| (now - spawned) / 1e6)
}

/// CPU time of this process until now, in seconds: its own, and the kernel's for it.
fn cpu() -> (f64, f64) {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage");
    let seconds = |value: nix::sys::time::TimeVal| value.tv_sec() as f64 + value.tv_usec() as f64 / 1e6;
    (seconds(usage.user_time()), seconds(usage.system_time()))
}

fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or_default()
}

async fn measure(arguments: Arc<Arguments>) {
    let first = Session::open(&arguments);
    let mut sessions: Vec<Session> = (1..arguments.concurrency).map(|_| first.fork()).collect();
    sessions.push(first);
    let startup = since_spawn_ms();
    let (startup_user, startup_system) = cpu();
    let begun = Instant::now();
    let mut errors: Vec<String> = match sessions[0].run().await {
        Ok(text) => check(&arguments.scenario, &text).into_iter().collect(),
        Err(error) => vec![error],
    };
    let (first, first_result) = (begun.elapsed().as_secs_f64() * 1e3, since_spawn_ms());
    let (sessions, mut warm) = phase(sessions, &arguments, arguments.warmup.max(arguments.concurrency as u64)).await;
    let (user, system) = cpu();
    let begun = Instant::now();
    let (_, mut measured) = phase(sessions, &arguments, arguments.runs).await;
    let wall = begun.elapsed().as_secs_f64();
    let (user_end, system_end) = cpu();
    errors.append(&mut warm.errors);
    errors.append(&mut measured.errors);
    measured.nanos.sort_unstable();
    let count = measured.nanos.len().max(1);
    let share = |part: f64| measured.nanos.get(((count as f64 * part) as usize).min(count - 1)).map_or(0.0, |nanos| *nanos as f64 / 1e3);
    let each = |seconds: f64| seconds / count as f64;
    println!(
        "{}",
        json!({"peer": "helve", "version": env!("CARGO_PKG_VERSION"), "scenario": arguments.scenario, "concurrency": arguments.concurrency,
            "runs": measured.nanos.len(), "wall_s": wall, "runs_per_s": measured.nanos.len() as f64 / wall,
            "p50_us": share(0.5), "p99_us": share(0.99), "user_s_per_run": each(user_end - user), "sys_s_per_run": each(system_end - system),
            "cpu_s_per_run": each(user_end + system_end - user - system), "peak_rss_kb": peak_rss_kb(), "startup_ms": startup,
            "startup_cpu_s": startup_user + startup_system, "first_run_ms": first, "first_result_ms": first_result,
            "errors": errors.len(), "error": errors.first()})
    );
}

fn main() {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let arguments = Arc::new(Arguments::read());
    let runtime = if arguments.threads <= 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()
    };
    runtime.expect("a runtime").block_on(measure(arguments));
}
