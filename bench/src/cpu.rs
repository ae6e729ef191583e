//! CPU time of this process and of its children.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// CPU time that this process used until now.
pub fn of_process() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock").into()
}

/// CPU time that ended children used until now.
pub fn of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage");
    let time =
        |value: nix::sys::time::TimeVal| Duration::from_micros(u64::try_from(value.tv_sec() * 1_000_000 + value.tv_usec()).unwrap_or(0));
    time(usage.user_time()) + time(usage.system_time())
}

/// CPU time of some work, the least of several tries: what disturbs a measurement only ever adds.
pub fn least(tries: usize, mut work: impl FnMut()) -> Duration {
    let once = |work: &mut dyn FnMut()| {
        let before = of_process();
        work();
        of_process().saturating_sub(before)
    };
    (0..tries).map(|_| once(&mut work)).min().unwrap_or_default()
}
