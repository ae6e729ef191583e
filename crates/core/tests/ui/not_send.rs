#![allow(unused_variables)]

use helve_core::tool;

/// Waits.
#[tool(crate = helve_core)]
async fn wait() {
    let local = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(local);
}

fn main() {}
