//! Ending a run from inside: the model says that nothing more is to be done.

use helve_core::tool;

/// Ends the answer here, with these last words or with what was said so far. Call it when there is nothing left to do
/// or to say.
#[tool(crate = helve_core, idempotent, ends_run)]
async fn stop_response(
    /// The last words to the user; left out, what was said so far is the answer.
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
