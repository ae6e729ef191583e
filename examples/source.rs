//! A custom source: tools that come and go while agents run.
//!
//! Run it with `cargo run -p helve --all-features --example source`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use helve::catalogue::{ListSource, SourceId, SourceState, ToolSource};
use helve::prelude::*;
use helve::tool::IntoTool;
use tokio::sync::watch;

/// A source of machines that are plugged in and out. For a list that only the program changes, use [`ListSource`] with `add` and `remove`.
struct Machines {
    id: SourceId,
    state: watch::Sender<SourceState>,
}

impl Machines {
    fn plugged_in(&self, names: &[&str]) -> helve::Result<()> {
        let tool = |name: &&str| tool_fn(*name, "Switches a machine.", |_: serde_json::Value, _| async { Ok("humming") }).into_tool();
        let tools = names.iter().map(tool).collect::<Result<Vec<_>, _>>()?;
        self.state.send_replace(SourceState::Ready(tools.into_iter().collect()));
        Ok(())
    }
}

impl ToolSource for Machines {
    fn id(&self) -> &SourceId {
        &self.id
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.state.subscribe()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let machines = Arc::new(Machines { id: "machines".into(), state: watch::Sender::new(SourceState::Connecting) });
    let helve = Helve::builder().source(machines.clone()).build().await?;
    machines.plugged_in(&["mixer", "oven"])?;
    println!("{}", helve.call("oven", json!({})).await.text());
    machines.plugged_in(&["mixer"])?;
    println!("{}", helve.call("oven", json!({})).await.text());

    let list = Arc::new(ListSource::new("lamps", []));
    helve.catalogue().add_source(list.clone());
    list.add(tool_fn("lamp", "Switches a lamp.", |_: serde_json::Value, _| async { Ok("bright") }).into_tool()?)?;
    println!("{}", helve.call("lamp", json!({})).await.text());
    Ok(())
}
