//! Custom middleware around every call that runs: a log, and a rate limit for each user.
//!
//! Run it with `cargo run -p helve --all-features --example layer`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use helve::executor::{Layer, Next};
use helve::prelude::*;

#[derive(Default)]
struct PerUser(Mutex<HashMap<Arc<str>, u32>>);

impl PerUser {
    fn count(&self, user: &Arc<str>) -> u32 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(user.clone()).and_modify(|count| *count += 1).or_insert(1)
    }
}

impl Layer for PerUser {
    async fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> Result<Output, ToolError> {
        let user = cx.caller().user.clone().unwrap_or_else(|| "anonymous".into());
        let count = self.count(&user);
        println!("{user} calls {} for the {count}. time", call.tool);
        if count > 2 {
            return Err(ToolError::new(ErrorKind::RateLimited, format!("{user} has made 2 calls")));
        }
        next.run(call, cx).await
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let roll = tool_fn("roll", "Rolls a die.", |_: serde_json::Value, _| async { Ok(4) });
    let helve = Helve::builder().tool(roll).layer(PerUser::default()).build().await?;
    let model = ScriptedModel::new().calls(vec![("roll", json!({})); 3]).says("That is enough.");
    println!("{}", helve.agent(model).with_user("ada").run("Roll three times").await?);
    Ok(())
}
