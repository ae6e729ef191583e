//! Servers out of the files of other clients, through the binary.

use std::fs;

use serde_json::{Value, json};

use crate::folder::{Project, stderr, stdout};

const FILE: &str = r#"{
    // as editors write it
    "mcpServers": {
        "clock": {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"], "env": {"TZ": "UTC", "CLOCK_API_KEY": "sk-1234567890"}},
        "docs": {"url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer sk-abcdefghij"}},
        "off": {"command": "never", "disabled": true},
    }
}"#;

fn written(project: &Project, name: &str) -> String {
    fs::read_to_string(project.folder.path().join(format!("tools/mcp/{name}.yaml"))).expect("a file")
}

#[test]
fn servers_of_another_client_are_taken_over_without_their_secrets() {
    let project = Project::new(&[(".cursor/mcp.json", FILE)]);
    // The file is found by itself where there is only one.
    let output = project.command(&["mcp", "import", "--json"]).env("HOME", project.state.path()).output().expect("helve runs");
    let taken: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let names: Vec<&str> = taken["servers"].as_array().expect("a list").iter().filter_map(|server| server["name"].as_str()).collect();
    assert!(names.contains(&"clock") && names.contains(&"docs"), "{taken}");
    let clock = written(&project, "clock");
    assert!(clock.contains("mcp-server-time") && clock.contains("TZ=UTC") && clock.contains("CLOCK_API_KEY"), "{clock}");
    let all = clock + &written(&project, "docs") + &stdout(&output) + &stderr(&output);
    assert!(!all.contains("sk-1234567890") && !all.contains("sk-abcdefghij"), "{all}");
    let list = project.json(&["mcp", "list", "--json"]);
    assert!(
        list["servers"].as_array().expect("a list").iter().all(|server| server["connected"] == json!(false)),
        "nobody trusts it: {list}"
    );
}

#[test]
fn what_is_there_stays_and_what_is_wrong_is_told() {
    let project = Project::new(&[("other.json", FILE), ("tools/mcp/clock.yaml", "name: clock\ncommand: [mine]\n")]);
    let file = project.folder.path().join("other.json").display().to_string();
    let output = project.run(&["mcp", "import", &file, "clock"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("skipped"), "{}", stdout(&output));
    assert!(written(&project, "clock").contains("mine"));
    let missing = project.run(&["mcp", "import", &file, "clocks"]);
    assert!(stderr(&missing).contains("there is no MCP server `clocks`"), "{}", stderr(&missing));
    project.write("bad.json", b"{\"mcpServers\": 7}");
    let bad = project.folder.path().join("bad.json").display().to_string();
    let refused = project.run(&["mcp", "import", &bad]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
}
