//! The tool `stop_response`, with which the model ends its run.

use helve_core::tool;

/// Ends your turn without further text, for example when the user says goodbye or wants silence. Never use it to answer a
/// question: write answers as text.
#[tool(crate = helve_core, idempotent, ends_run)]
async fn stop_response(
    /// Last words to the user, if any. If omitted, the text so far is the answer.
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
