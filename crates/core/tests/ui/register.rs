use helve_core::{IntoTool, IntoTools, tool, tool_fn};

struct Unfinished;

/// Adds.
#[tool(crate = helve_core)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn register<Kind>(_: impl IntoTool<Kind>) {}
fn register_all<Kind>(_: impl IntoTools<Kind>) {}

fn main() {
    register(add);
    register(Unfinished);
    register_all(Unfinished);
    register(tool_fn("plain", "Returns no result.", |args: serde_json::Value, _| async move { args }));
}
