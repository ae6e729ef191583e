//! What a tool's author refuses is refused before a person is asked.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use helve_core::{DynTool, IntoTool, Permission, ToolList, tool_fn};
use helve_testkit::{call, toolkit};
use helve_tools::Executor;
use serde_json::{Value, json};

/// A tool that a person must approve, and how often its arguments were looked at.
fn wiper() -> (Arc<AtomicU32>, Arc<dyn DynTool>) {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = looks.clone();
    let wipe = tool_fn("wipe", "Wipes a disk.", |args: Value, _| async move { Ok(format!("wiped {}", args["disk"])) })
        .schema(json!({"type": "object", "properties": {"disk": {"type": "integer", "maximum": 9}}, "required": ["disk"]}))
        .permission(Permission::Confirm)
        .validate(move |args| {
            counted.fetch_add(1, Ordering::SeqCst);
            match args["disk"].as_u64() {
                Some(0) => Err("disk 0 is in use".into()),
                Some(1) => panic!("disk 1 is broken"),
                _ => Ok(()),
            }
        });
    (looks, wipe.into_tool().expect("a tool"))
}

#[tokio::test]
async fn nobody_is_asked_about_arguments_that_the_author_refuses() {
    let (looks, wipe) = wiper();
    let (executor, tools) = (Executor::default(), toolkit([wipe]));
    let refused = call(&executor, &tools, "wipe", json!({"disk": 0})).await;
    assert_eq!(refused["error"], json!({"kind": "invalid_parameters", "message": "disk 0 is in use", "details": {}}));
    assert_eq!(call(&executor, &tools, "wipe", json!({"disk": "2"})).await["status"], "waiting", "its arguments are coerced first");
    assert_eq!(looks.load(Ordering::SeqCst), 2);
    assert_eq!(call(&executor, &tools, "wipe", json!({"disk": 300})).await["error"]["kind"], "invalid_parameters");
    assert_eq!(looks.load(Ordering::SeqCst), 2, "the schema comes first");
}

#[tokio::test]
async fn a_panic_costs_only_the_call() {
    let (_, wipe) = wiper();
    let outcome = call(&Executor::default(), &toolkit([wipe]), "wipe", json!({"disk": 1})).await;
    assert_eq!(
        (&outcome["error"]["kind"], &outcome["error"]["message"]),
        (&json!("failed"), &json!("the tool panicked: disk 1 is broken"))
    );
}

#[tokio::test]
async fn a_tool_under_another_name_is_validated_too() {
    let (_, wipe) = wiper();
    let list: ToolList = [wipe].into_iter().collect();
    let list = list.renamed(&HashMap::from([("wipe".to_owned(), "erase".to_owned())])).expect("a name");
    let outcome = call(&Executor::default(), &toolkit(list.as_slice().iter().cloned()), "erase", json!({"disk": 0})).await;
    assert_eq!(outcome["error"]["kind"], "invalid_parameters");
}
