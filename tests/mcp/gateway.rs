//! What servers have besides tools, through Helve: resources, prompts, completion and questions.

use serde_json::{Value, json};

use crate::clients::scene;
use crate::peers::Peers;
use crate::running::Running;
use crate::scene::folder;

/// What a client sees of it.
fn look(peers: &Peers, era: &str, address: &str) -> Value {
    let home = folder();
    let (status, stdout, stderr) = Running::start(peers.client("gateway.py", &home).args([era, address])).finish();
    assert!(status.success(), "{stdout}{stderr}");
    serde_json::from_str(stdout.trim()).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

fn expect(seen: &Value) {
    let has = |list: &str, item: &str| seen[list].as_array().is_some_and(|items| items.contains(&json!(item)));
    for (list, item) in [
        ("capabilities", "completions"),
        ("capabilities", "prompts"),
        ("capabilities", "resources"),
        ("capabilities", "tools"),
        ("resources", "demo://resource/static/document/features.md"),
        ("templates", "demo://resource/dynamic/text/{resourceId}"),
        ("prompts", "everything_simple-prompt"),
    ] {
        assert!(has(list, item), "{item} is not in {list} of {seen}");
    }
    assert_eq!((&seen["prompt"], &seen["completion"]), (&json!("What's weather in Lyon?"), &json!(["Sales", "Support"])), "{seen}");
    assert!(seen["resource"].as_str().is_some_and(|text| text.starts_with("Resource 7: This is a plaintext resource")), "{seen}");
    assert_eq!(seen["no_resource"], "Unknown resource: demo://nowhere", "{seen}");
    assert_eq!(seen["progress"], json!([[1.0, 3.0], [2.0, 3.0], [3.0, 3.0]]), "as the server tells it: {seen}");
    assert_eq!(seen["error"]["is_error"], json!(true), "{seen}");
}

#[test]
fn what_servers_have_besides_tools_reaches_clients_of_both_eras() {
    let Some(peers) = Peers::find("what_servers_have_besides_tools_reaches_clients_of_both_eras") else { return };
    let scene = scene(&peers);
    let (_server, address) = scene.serve(&["--gateway"]);
    let newer = look(&peers, "auto", &address);
    expect(&newer);
    assert_eq!(newer["protocol"], "2026-07-28");
    let older = look(&peers, "legacy", &address);
    expect(&older);
    assert_eq!(older["protocol"], "2025-11-25");
    assert_eq!(older["asked"], json!(["Please provide inputs for the following fields:"]), "{older}");
    assert!(older["elicited"].as_str().is_some_and(|text| text.contains("Name: Ada") && text.contains("Agreed to terms: true")), "{older}");
}

/// Without the word for it, only tools are served.
#[test]
fn nothing_but_tools_is_served_unless_someone_asks_for_it() {
    let Some(peers) = Peers::find("nothing_but_tools_is_served_unless_someone_asks_for_it") else { return };
    let scene = scene(&peers);
    let (_server, address) = scene.serve(&[]);
    let home = folder();
    let mut inspector = peers.inspector(&home);
    let (status, stdout, stderr) = Running::start(inspector.args([&*address, "--method", "resources/list"])).finish();
    assert!(!status.success() || !stdout.contains("demo://"), "{stdout}{stderr}");
}
