//! Crash points: places at which tests crash the process. Without the feature `crash-points` they do nothing.

/// The crash point before a commit.
pub(crate) const BEFORE: &str = "before";
/// The crash point after a commit, before the caller gets the result.
pub(crate) const AFTER: &str = "after";

/// Returns whether the environment selects this crash point, as in `HELVE_CRASH_AT=accept:before`.
#[cfg(feature = "crash-points")]
pub(crate) fn is_chosen(transaction: &str, moment: &str) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| helve_core::environment::var("HELVE_CRASH_AT"));
    CHOSEN.as_deref().and_then(|chosen| chosen.split_once(':')) == Some((transaction, moment))
}

#[cfg(not(feature = "crash-points"))]
pub(crate) const fn is_chosen(_: &str, _: &str) -> bool {
    false
}

/// Aborts the process if the environment selects this crash point.
pub(crate) fn reach(transaction: &str, moment: &str) {
    if is_chosen(transaction, moment) {
        std::process::abort();
    }
}
