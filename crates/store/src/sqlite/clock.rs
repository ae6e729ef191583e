//! The clock of leases: it counts since the machine started and never jumps. All processes of the machine share it.

use std::sync::LazyLock;

/// Milliseconds since the machine started. It stands still while the machine sleeps, as everything that it measures does.
pub(super) fn since_boot() -> i64 {
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

/// Which start of the machine this is. Leases of an earlier one are over.
pub(super) fn boot() -> &'static str {
    static BOOT: LazyLock<String> =
        LazyLock::new(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default());
    &BOOT
}
