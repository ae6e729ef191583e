//! Points at which tests crash the process. Without the feature `crash-points` they do nothing.

/// All changes are made, and not committed.
pub(crate) const BEFORE: &str = "before";
/// The changes are committed, and the caller does not know it yet.
pub(crate) const AFTER: &str = "after";

/// Whether the environment asks for a crash here, as in `HELVE_CRASH_AT=accept:before`.
#[cfg(feature = "crash-points")]
pub(crate) fn is_chosen(transaction: &str, moment: &str) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| helve_core::environment::var("HELVE_CRASH_AT"));
    CHOSEN.as_deref().and_then(|chosen| chosen.split_once(':')) == Some((transaction, moment))
}

#[cfg(not(feature = "crash-points"))]
pub(crate) const fn is_chosen(_: &str, _: &str) -> bool {
    false
}

/// Crashes here if the environment asks for it.
pub(crate) fn reach(transaction: &str, moment: &str) {
    if is_chosen(transaction, moment) {
        std::process::abort();
    }
}
