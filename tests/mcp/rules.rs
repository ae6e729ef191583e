//! What holds for clients of Helve's MCP server: rules for agents, approvals, and that nothing runs which nobody waits for.

use serde_json::{Value, json};

use crate::client::Client;
use crate::folder::{Project, echo};
use crate::running::until;

fn questions(project: &Project, state: &str) -> Vec<Value> {
    let all = project.json(&["approvals", "list", "--all", "--json"]);
    all["approvals"].as_array().expect("a list").iter().filter(|approval| approval["state"] == state).cloned().collect()
}

#[test]
fn rules_for_agents_hold_for_clients() {
    let rules = "permissions:\n  - {tool: first, agent: \"*\", permission: deny}\n  - {tool: second, agent: mcp, permission: deny}\n  \
                 - {tool: third, agent: assistant, permission: deny}\n";
    let tools = ["first", "second", "third"].map(|name| (format!("tools/builtin/{name}.yaml"), echo(name)));
    let files: Vec<(&str, &str)> = tools.iter().map(|(path, text)| (path.as_str(), text.as_str())).chain([("helve.yaml", rules)]).collect();
    let project = Project::new(&files);
    assert!(project.run(&["trust", "--yes"]).status.success());
    let mut client = Client::of(&project, &[]);
    for tool in ["first", "second"] {
        let denied = client.call(tool);
        assert_eq!(denied["result"]["isError"], json!(true), "{denied}");
        assert!(denied["result"]["content"][0]["text"].as_str().is_some_and(|text| text.starts_with("permission_denied")), "{denied}");
    }
    let allowed = client.call("third");
    assert_eq!(allowed["result"]["structuredContent"], json!({"text": "hi"}), "what a client calls itself is its own word: {allowed}");
}

#[test]
fn programs_of_a_folder_that_nobody_trusts_wait_for_a_person() {
    let project = Project::new(&[("tools/builtin/shout.yaml", &echo("shout"))]);
    let mut client = Client::of(&project, &[]);
    let call = client.begin("tools/call", &json!({"name": "shout", "arguments": {"text": "hi"}}));
    let asked = until("a question", || questions(&project, "pending").into_iter().next());
    assert_eq!((&asked["tool"], &asked["agent"]), (&json!("shout"), &json!("mcp")));
    // Whoever gives up gets nothing, now or later.
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}));
    let denied = until("the question is withdrawn", || questions(&project, "denied").into_iter().next());
    assert_eq!(denied["id"], asked["id"]);
    let late = project.run(&["approvals", "approve", asked["id"].as_str().expect("an id")]);
    assert_eq!(late.status.code(), Some(1), "an answer comes too late");
}

#[test]
fn a_tool_that_is_not_there_is_an_error_and_in_a_gateway_a_failed_result() {
    let project = Project::new(&[]);
    let refused = Client::of(&project, &[]).call("nothing");
    assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
    let failed = Client::of(&project, &["--gateway"]).call("nothing");
    assert_eq!(failed["result"]["isError"], json!(true), "{failed}");
}
