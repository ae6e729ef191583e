//! Ending a run from inside: the model says that nothing more is to be done.

use helve_core::tool;

/// Ends your turn without another word, for example when the user says goodbye or wants silence. Never use it to answer a
/// question: answers are given as text.
#[tool(crate = helve_core, idempotent, ends_run)]
async fn stop_response(
    /// Last words to the user, if any; left out, what was said so far stands.
    text: Option<String>,
) -> String {
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::stop_response;

    #[test]
    fn it_ends_the_run() {
        assert!(stop_response::tool().spec().rules().ends_run);
    }
}
