//! A durable run with background calls.
//!
//! Run it with `cargo run -p helve --all-features --example durable_run`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use helve::prelude::*;

/// Writes a report, which takes a while.
#[tool(background)]
async fn make_report(about: String) -> String {
    format!("All is well with {about}.")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let folder = tempfile::tempdir()?;
    let store = format!("sqlite:{}", folder.path().join("helve.db").display());
    let helve = Helve::builder().tool(make_report::tool()).store(store).workers(4).build().await?;
    let model = ScriptedModel::new()
        .calls([("make_report", json!({"about": "the house"}))])
        .says("It is being written.")
        .says("The report says that all is well.");
    let mut agent = helve.agent(model);
    println!("{}", agent.run("A report about the house, please").await?);
    if let Some(answer) = agent.results().await? {
        println!("{answer}");
    }
    Ok(())
}
