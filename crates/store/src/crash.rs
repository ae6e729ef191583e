//! Points at which tests let the process die. Without the feature `crash-points` there is nothing here.

/// All changes are made, and not committed.
pub(crate) const BEFORE: &str = "before";
/// They are committed, and nobody knows it yet.
pub(crate) const AFTER: &str = "after";

/// Whether the environment says that the process dies here, as `HELVE_CRASH_AT=accept:before`.
#[cfg(feature = "crash-points")]
pub(crate) fn is_chosen(transaction: &str, moment: &str) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| helve_core::environment::var("HELVE_CRASH_AT"));
    CHOSEN.as_deref().and_then(|chosen| chosen.split_once(':')) == Some((transaction, moment))
}

#[cfg(not(feature = "crash-points"))]
pub(crate) const fn is_chosen(_: &str, _: &str) -> bool {
    false
}

/// Dies here if the environment says so.
pub(crate) fn reach(transaction: &str, moment: &str) {
    if is_chosen(transaction, moment) {
        std::process::abort();
    }
}
