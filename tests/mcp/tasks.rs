//! Calls that a client comes back for: what runs in the background, and what waits for a person.

use serde_json::{Value, json};

use crate::asking::Greeter;
use crate::client::{Client, user};
use crate::folder::{Project, echo};
use crate::running::until;

/// A project whose tool `slow` runs in the background until a file is there.
fn background() -> Project {
    let slow = "name: slow\ndescription: Waits for a file.\ncommand: [sh, -c, \"while [ ! -e go ]; do sleep 0.02; done; echo gone\"]\nmode: background\n";
    let project = Project::new(&[("tools/builtin/slow.yaml", slow), ("tools/builtin/quick.yaml", &echo("quick"))]);
    assert!(project.run(&["trust", "--yes"]).status.success());
    project
}

fn call(client: &mut Client, tool: &str) -> Value {
    client.ask("tools/call", &json!({"name": tool, "arguments": {}}))["result"].clone()
}

fn task(client: &mut Client, id: &Value) -> Value {
    client.ask("tasks/get", &json!({"taskId": id}))["result"].clone()
}

/// Waits until a task has this status.
fn reach(client: &mut Client, id: &Value, status: &str) -> Value {
    until(status, || Some(task(client, id)).filter(|task| task["status"] == status))
}

#[test]
fn what_runs_in_the_background_is_a_task_also_after_a_restart() {
    let project = background();
    let mut client = Client::with_tasks(&project, &[]);
    let begun = call(&mut client, "slow");
    assert_eq!((&begun["resultType"], &begun["status"], &begun["ttlMs"]), (&json!("task"), &json!("working"), &Value::Null), "{begun}");
    let id = &begun["taskId"];
    let found = task(&mut client, id);
    assert_eq!((&found["resultType"], &found["status"], found.get("result")), (&json!("complete"), &json!("working"), None), "{found}");
    drop(client);
    project.write("go", b"");
    let mut client = Client::with_tasks(&project, &[]);
    let over = until("an end", || Some(task(&mut client, id)).filter(|task| task["status"] != "working"));
    // A command must not run twice, so the one that was broken off is over; what matters is that the client is told.
    assert_eq!((&over["status"], &over["taskId"]), (&json!("completed"), id), "{over}");
    let again = call(&mut client, "slow");
    let over = reach(&mut client, &again["taskId"], "completed");
    assert!(over["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("gone")), "{over}");
    assert!(over["ttlMs"].is_u64(), "{over}");
}

#[test]
fn a_task_can_be_cancelled_and_one_that_is_over_stays_so() {
    let project = background();
    let mut client = Client::with_tasks(&project, &[]);
    let begun = call(&mut client, "slow");
    let id = &begun["taskId"];
    let cancelled = client.ask("tasks/cancel", &json!({"taskId": id}));
    assert_eq!((&cancelled["result"]["resultType"], cancelled["result"].get("taskId")), (&json!("complete"), None), "{cancelled}");
    reach(&mut client, id, "cancelled");
    until("no task runs", || {
        let list = project.json(&["tasks", "--json"]);
        list["tasks"].as_array().expect("a list").iter().all(|task| task["state"] == "cancelled").then_some(())
    });
    let again = client.ask("tasks/cancel", &json!({"taskId": id}));
    assert_eq!(again["result"]["resultType"], json!("complete"), "{again}");
}

#[test]
fn only_clients_that_know_tasks_get_them() {
    let project = background();
    let mut client = Client::with_user(&project, &[], true);
    let refused = client.ask("tasks/get", &json!({"taskId": "call_01M7H5W2SX8RBW8KVCFWM0TYDP"}));
    let wanted = &refused["error"]["data"]["requiredCapabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
    assert_eq!((&refused["error"]["code"], wanted), (&json!(-32021), &json!({})), "{refused}");
    project.write("go", b"");
    let slow = call(&mut client, "slow");
    assert_eq!((&slow["resultType"], slow.get("taskId")), (&json!("complete"), None), "{slow}");
    let mut client = Client::with_tasks(&project, &[]);
    let quick = client.call("quick");
    assert_eq!((&quick["result"]["resultType"], quick["result"].get("taskId")), (&json!("complete"), None), "nothing to wait for: {quick}");
    for id in ["call_01M7H5W2SX8RBW8KVCFWM0TYDP", "nonsense"] {
        assert_eq!(client.ask("tasks/get", &json!({"taskId": id}))["error"]["code"], json!(-32602));
    }
}

#[test]
fn a_task_waits_for_a_person_and_then_for_the_user() {
    let greeter = Greeter::start();
    let scene = greeter.scene(false);
    for options in [&[][..], &["--gateway"]] {
        let mut client = Client::with_tasks(&scene.project, options);
        let begun = call(&mut client, "greeter_greet");
        assert_eq!(begun["resultType"], json!("task"), "{begun}");
        let id = &begun["taskId"];
        let waits = until("a word", || Some(task(&mut client, id)).filter(|task| task.get("statusMessage").is_some()));
        assert!(waits["statusMessage"].as_str().is_some_and(|said| said.starts_with("waits for approval appr_")), "{waits}");
        scene.approve_what_waits();
        let asks = reach(&mut client, id, "input_required");
        let requests = asks["inputRequests"].as_object().expect("requests");
        assert!(requests.values().all(|request| request["params"]["message"] == "Who are you?"), "{asks}");
        let other = client.ask("tasks/update", &json!({"taskId": id, "inputResponses": {"other": user()}}));
        assert_eq!(other["result"]["resultType"], json!("complete"), "{other}");
        assert_eq!(task(&mut client, id)["status"], json!("input_required"), "that was no answer");
        let answers: Value = requests.keys().map(|key| (key.clone(), user())).collect();
        client.ask("tasks/update", &json!({"taskId": id, "inputResponses": answers}));
        let over = reach(&mut client, id, "completed");
        assert_eq!(over["result"]["content"][0]["text"], json!("hello Ada"), "{options:?}: {over}");
    }
}
