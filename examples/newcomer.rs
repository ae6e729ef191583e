//! A first program: tools that share state, an approval, and a stored run.
//!
//! Run it with `cargo run -p helve --all-features --example newcomer`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::atomic::{AtomicU32, Ordering};

use helve::prelude::*;

struct Shop {
    apples: AtomicU32,
}

#[tools]
impl Shop {
    /// Returns how many apples are left.
    #[tool(idempotent)]
    async fn stock(&self) -> u32 {
        self.apples.load(Ordering::Relaxed)
    }

    /// Sells apples.
    #[tool(permission = "confirm")]
    async fn sell(&self, count: u32) -> helve::Result<u32> {
        let left = self.apples.load(Ordering::Relaxed).checked_sub(count).ok_or("there are not so many")?;
        self.apples.store(left, Ordering::Relaxed);
        Ok(left)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let folder = tempfile::tempdir()?;
    let store = format!("sqlite:{}", folder.path().join("shop.db").display());
    let helve = Helve::builder().tools(Shop { apples: 10.into() }).store(store).build().await?;
    let model = ScriptedModel::new().calls([("stock", json!({}))]).calls([("sell", json!({"count": 3}))]).says("Sold.");
    let mut agent = helve.agent(model).with_approver(|request: ApprovalRequest| async move {
        println!("{} {}?", request.tool, request.call.arguments);
        Decision::Approve
    });
    println!("{}", agent.run("Three apples, please").await?);
    Ok(())
}
