//! Approvals: decided at once by a closure, or later in another process. Exactly one decision counts.
//!
//! Run it with `cargo run -p helve --all-features --example approvals`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use helve::prelude::*;

/// Deletes a file.
#[tool(permission = "confirm")]
fn delete(path: String) -> String {
    format!("{path} is deleted")
}

/// Every process builds its own Helve. Pending approvals are in the store.
async fn process(store: &str) -> helve::Result<Helve> {
    Ok(Helve::builder().tool(delete::tool()).store(store).build().await?)
}

fn model() -> ScriptedModel {
    ScriptedModel::new().calls([("delete", json!({"path": "notes.txt"}))]).says("Done.")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let folder = tempfile::tempdir()?;
    let store = format!("sqlite:{}", folder.path().join("helve.db").display());

    // An approver decides at once: a person at a terminal, a dialog, or your own policy.
    let approver = |request: ApprovalRequest| async move {
        println!("{} with {}?", request.tool, request.call.arguments);
        Decision::Edit(json!({"path": "old-notes.txt"}))
    };
    let mut agent = process(&store).await?.agent(model()).with_approver(approver);
    println!("{}", agent.run("Delete my notes").await?);

    // Without an approver, the run pauses, and waits in the store.
    if let Err(waiting) = process(&store).await?.agent(model()).run("Delete my notes").await {
        println!("{waiting}");
    }

    // Another process decides and resumes the run.
    let helve = process(&store).await?;
    for approval in helve.pending().await? {
        let decided = helve.decide(approval.request.id, &Decision::Approve, "ada").await?;
        if let Err(too_late) = helve.decide(approval.request.id, &Decision::Deny { reason: None }, "eve").await {
            println!("{too_late}");
        }
        if let Some(run) = decided.request.caller.run {
            println!("{}", helve.agent(ScriptedModel::new().says("It is gone.")).resume_run(run).await?);
        }
    }
    Ok(())
}
