//! The clock for leases. It is monotonic since boot, and the same for all processes on the machine.

use std::sync::LazyLock;

/// Returns the milliseconds since boot. The clock stops while the machine sleeps, as the processes do.
pub(super) fn since_boot() -> i64 {
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

/// Returns the id of this boot, or an empty text if the system has none. Leases of an earlier boot have expired.
pub(super) fn boot() -> &'static str {
    static BOOT: LazyLock<String> =
        LazyLock::new(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default());
    &BOOT
}
