//! Points at which tests let the process die. Without the feature `crash-points` there is nothing here.

/// All changes are made, and not committed.
pub(super) const BEFORE: &str = "before";
/// They are committed, and nobody knows it yet.
pub(super) const AFTER: &str = "after";

/// Dies here if the environment says so, as `HELVE_CRASH_AT=accept:before`.
#[cfg(feature = "crash-points")]
pub(super) fn reach(transaction: &str, moment: &str) {
    static CHOSEN: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| std::env::var("HELVE_CRASH_AT").ok());
    if CHOSEN.as_deref().and_then(|chosen| chosen.split_once(':')) == Some((transaction, moment)) {
        std::process::abort();
    }
}

#[cfg(not(feature = "crash-points"))]
pub(super) const fn reach(_: &str, _: &str) {}
