//! A constant load for a long time: memory and disk usage must not grow.
//!
//! `torture soak MINUTES [--postgres] [--readers N]`. Calls are accepted, claimed and finished, runs go step by step to their end, readers hold on to
//! an old moment for seconds, and what ended is forgotten. At the end, the last third of the time is compared with the first.

#![allow(clippy::print_stdout, reason = "it says what it sees")]

mod gauge;
mod load;

use std::time::{Duration, Instant};

use self::gauge::{Gauge, Sample};
use self::load::{Done, Load};
use crate::location::StoreLocation;
use crate::server::{Schema, known};

/// Interval between measurements.
const LOOK: Duration = Duration::from_secs(5);
/// The beginning does not count: caches are filled once.
const BEGINNING: Duration = Duration::from_mins(1);
/// Maximum growth of memory, in percent.
const GROWTH: u64 = 5;
/// So large the log of a file may be.
const LOG: u64 = 64 << 20;
/// Dead rows and free space below this do not count.
const FEW_ROWS: u64 = 20_000;
const LITTLE_ROOM: u64 = 32 << 20;

/// Runs it as the command line says.
pub fn run(arguments: &[&str]) {
    let (postgres, arguments): (Vec<&str>, Vec<&str>) = arguments.iter().partition(|argument| **argument == "--postgres");
    let postgres = !postgres.is_empty();
    let (minutes, readers) = match arguments[..] {
        [minutes] => (minutes, 1),
        [minutes, "--readers", readers] => (minutes, readers.parse().expect("a number of readers")),
        _ => panic!("torture soak MINUTES [--postgres] [--readers N]"),
    };
    let time = Duration::from_secs_f64(minutes.parse::<f64>().expect("minutes") * 60.0);
    let folder = tempfile::tempdir().expect("a folder");
    let schema = postgres.then(|| Schema::new(&known("soak").expect("a server")));
    let place =
        schema.as_ref().map_or_else(|| StoreLocation::File(folder.path().join("store.db")), |schema| StoreLocation::Server(schema.url()));
    let faults = soak(&place, time, readers);
    assert!(faults.is_empty(), "FAIL: {}", faults.join("; "));
    println!("PASS");
}

/// Keeps the load up for this time, and reports what grew.
fn soak(place: &StoreLocation, time: Duration, readers: usize) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (mut load, gauge) = (runtime.block_on(Load::start(place, readers)), Gauge::new(place));
    let (begun, mut samples, mut told) = (Instant::now(), Vec::new(), 0);
    println!("{:>6} {:>9} {:>9} {:>9} {:>9}  done", "min", "RSS MiB", "log MiB", "size MiB", "dead rows");
    while begun.elapsed() < time {
        std::thread::sleep(LOOK.min(time));
        let sample = gauge.look();
        if begun.elapsed() > BEGINNING.min(time / 4) {
            samples.push(sample);
        }
        let done = load.done();
        let minute = begun.elapsed().as_secs() / 60;
        if minute > told || begun.elapsed() >= time {
            told = minute;
            say(begun.elapsed(), &sample, &done);
        }
    }
    let done = load.done();
    drop(load);
    let mut faults = faults(&samples);
    if done.is_idle() {
        faults.push(format!("nothing happened: {done:?}"));
    }
    faults
}

fn say(time: Duration, sample: &Sample, done: &Done) {
    let mib = |bytes: u64| bytes >> 20;
    let Sample { memory, log, size, dead } = sample;
    println!("{:>6.1} {:>9} {:>9} {:>9} {dead:>9}  {done}", time.as_secs_f32() / 60.0, mib(*memory), mib(*log), mib(*size));
}

/// What is larger at the end than it may be.
fn faults(samples: &[Sample]) -> Vec<String> {
    let third = samples.len().div_ceil(3);
    let (first, last) = (&samples[..third], &samples[samples.len() - third..]);
    let mean = |part: &[Sample]| part.iter().map(|sample| sample.memory).sum::<u64>() / part.len().max(1) as u64;
    let most = |part: &[Sample], what: fn(&Sample) -> u64| part.iter().map(what).max().unwrap_or_default();
    let mut faults = Vec::new();
    let (before, after) = (mean(first), mean(last));
    println!("memory: {} KiB on average in the first third, {} KiB in the last", before >> 10, after >> 10);
    if after * 100 > before * (100 + GROWTH) {
        faults.push(format!("memory grew from {before} to {after} bytes"));
    }
    let log = most(samples, |sample| sample.log);
    println!("log: at most {} MiB", log >> 20);
    if log > LOG {
        faults.push(format!("the log had {log} bytes"));
    }
    for (name, few, what) in
        [("dead rows", FEW_ROWS, (|sample| sample.dead) as fn(&Sample) -> u64), ("size", LITTLE_ROOM, |sample| sample.size)]
    {
        let (before, after) = (most(first, what), most(last, what));
        println!("{name}: at most {before} in the first third, {after} in the last");
        if after > few && after > before + before / 2 {
            faults.push(format!("{name} grew from {before} to {after}"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(change: fn(&mut Sample, u64)) -> Vec<String> {
        let sample = |time: u64| {
            let mut sample = Sample { memory: 100 << 20, log: 1 << 20, size: 100 << 20, dead: 30_000 };
            change(&mut sample, time);
            sample
        };
        faults(&(0..30).map(sample).collect::<Vec<_>>())
    }

    #[test]
    fn what_grows_is_seen() {
        assert!(grown(|_, _| {}).is_empty());
        assert!(grown(|sample, time| sample.memory += (time % 10) << 20).is_empty(), "up and down");
        assert!(grown(|sample, time| sample.memory += time << 19)[0].contains("memory"));
        assert!(grown(|sample, time| sample.log += time << 22)[0].contains("log"));
        assert!(grown(|sample, time| sample.dead += time * 3000)[0].contains("dead rows"));
        assert!(grown(|sample, time| sample.size += time << 22)[0].contains("size"));
    }
}
