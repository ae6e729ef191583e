//! Tests of an agent: a scripted model, a paused clock, and checks of what the model received.
//!
//! Run them with `cargo test -p helve --all-features --example testing`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

fn main() {
    println!("cargo test -p helve --all-features --example testing");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

    use std::time::Duration;

    use helve::event::EndOfRun;
    use helve::prelude::*;

    /// Brews coffee.
    #[tool(timeout = "1m")]
    async fn brew(minutes: u64) -> String {
        tokio::time::sleep(Duration::from_mins(minutes)).await;
        "Coffee is ready.".to_owned()
    }

    fn agent(model: &ScriptedModel) -> Agent {
        Agent::new(model.clone()).tool(brew::tool()).expect("a tool")
    }

    #[tokio::test]
    async fn the_model_is_told_what_came_of_its_calls() {
        let model = ScriptedModel::new().calls([("brew", json!({"minutes": 0}))]).says("Enjoy!");
        assert_eq!(agent(&model).run("Coffee!").await.expect("an answer").text, "Enjoy!");
        let told = json!(model.requests()[1].messages.last()).to_string();
        assert!(told.contains("Coffee is ready."), "{told}");
        assert_eq!(model.answers_left(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_takes_too_long_is_a_failed_call() {
        let model = ScriptedModel::new().calls([("brew", json!({"minutes": 5}))]).says("No coffee today.");
        assert_eq!(agent(&model).run("Coffee!").await.expect("an answer").text, "No coffee today.");
        assert!(json!(model.requests()[1].messages.last()).to_string().contains("timeout"));
    }

    #[tokio::test]
    async fn a_run_can_be_cancelled() {
        let model = ScriptedModel::new().calls([("brew", json!({"minutes": 1}))]);
        let mut agent = agent(&model);
        let stream = agent.run_stream("Coffee!").await.expect("a run");
        stream.canceller().cancel();
        let ended = stream.finish().await;
        assert!(matches!(ended, Err(AgentError::Stopped { reason: EndOfRun::Cancelled, .. })), "{ended:?}");
    }
}
