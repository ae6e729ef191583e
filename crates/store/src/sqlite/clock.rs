//! The clock of leases: monotonic since boot, and shared by all processes of the machine.

use std::sync::LazyLock;

/// Milliseconds since boot. The clock stops while the machine sleeps, as the processes do.
pub(super) fn since_boot() -> i64 {
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

/// The id of this boot. Leases of an earlier one have expired.
pub(super) fn boot() -> &'static str {
    static BOOT: LazyLock<String> =
        LazyLock::new(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default());
    &BOOT
}
