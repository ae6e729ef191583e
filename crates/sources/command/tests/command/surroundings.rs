//! The environment of a program: its folder, its variables and its path.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use helve_core::{CallContext, ToolCall};
use serde_json::{Value, json};

use crate::support::{Project, error, run, text};

fn variables(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

#[tokio::test]
async fn the_environment_is_empty_but_for_what_is_allowed() {
    let project = Project::new();
    let tool = |env: Value| project.tool(json!({"command": ["env"], "env": env}));
    let call = ToolCall::new("test", json!({}));
    let said = run(&tool(json!([])), &call, &CallContext::default()).await.expect("an output").text;
    let bare = variables(&said);
    assert_eq!(bare.keys().copied().collect::<Vec<_>>(), ["HELVE_ATTEMPT_ID", "HELVE_CALL_ID", "PATH"]);
    assert_eq!(bare["HELVE_CALL_ID"], call.id.to_string());
    assert_eq!(bare["PATH"], std::env::var("PATH").expect("a PATH"));

    let shown = |(name, value): &(String, String)| !bare.contains_key(name.as_str()) && !value.is_empty() && !value.contains('\n');
    let (name, value) = std::env::vars().find(shown).expect("something that could be passed");
    let said = text(&tool(json!([name, "HELVE_TEST_UNSET", "HELVE_TEST=a=b c", "HELVE_TEST_EMPTY="])), json!({})).await;
    let allowed = variables(&said);
    assert_eq!((allowed[name.as_str()], allowed["HELVE_TEST"], allowed["HELVE_TEST_EMPTY"]), (value.as_str(), "a=b c", ""));
    assert_eq!(allowed.len(), bare.len() + 3, "{said}");
}

#[tokio::test]
async fn a_retried_call_is_another_attempt() {
    let project = Project::new();
    let tool = project.sh("echo $HELVE_CALL_ID $HELVE_ATTEMPT_ID");
    let call = ToolCall::new("test", json!({}));
    let (one, two) = (run(&tool, &call, &CallContext::default()).await, run(&tool, &call, &CallContext::default()).await);
    let (one, two) = (one.expect("an output").text, two.expect("an output").text);
    assert_eq!(one.split(' ').next(), two.split(' ').next());
    assert_ne!(one, two);
}

#[tokio::test]
async fn the_folder_is_the_projects_or_one_in_it() {
    let project = Project::new();
    assert_eq!(text(&project.sh("pwd -P"), json!({})).await, project.path().to_string_lossy());
    std::fs::create_dir_all(project.path().join("scripts/deep")).expect("a folder");
    let tool = project.tool(json!({"command": ["pwd", "-P"], "working_folder": "scripts/deep"}));
    assert_eq!(text(&tool, json!({})).await, project.path().join("scripts/deep").to_string_lossy());
}

#[tokio::test]
async fn programs_are_found_from_the_project_or_on_the_path() {
    let project = Project::new();
    project.write("hello", "#!/bin/sh\necho \"hello from $0\"\n", "755");
    std::fs::create_dir(project.path().join("inner")).expect("a folder");
    symlink("../hello", project.path().join("inner/link")).expect("a link");
    for (command, working_folder) in [("./hello", None), ("inner/link", None), ("./hello", Some("inner"))] {
        let tool = project.tool(json!({"command": [command], "working_folder": working_folder}));
        assert!(text(&tool, json!({})).await.starts_with("hello from /"), "{command}");
    }
    let absolute = project.path().join("hello");
    assert!(text(&project.tool(json!({"command": [absolute]})), json!({})).await.starts_with("hello"));
    // A name without `/` never means a file of the project.
    let refused = error(&project.tool(json!({"command": ["hello"]})), json!({})).await;
    assert!(refused.starts_with("failed: the program `hello`") && refused.contains("`./hello`"), "{refused}");
}

#[tokio::test]
async fn a_program_that_cannot_run_is_a_clear_failure() {
    let project = Project::new();
    project.write("plain", "#!/bin/sh\necho no\n", "644");
    project.write("lost", "#!/no/such/interpreter\n", "755");
    project.write("headless", "echo no\n", "755");
    for (program, message) in [
        ("helve-no-such-program", "is not installed: it was not found on the PATH"),
        ("./missing", "was not found in the project's folder"),
        ("./plain", "is not executable; run `chmod +x`"),
        ("./lost", "the interpreter in its first line does not exist"),
        ("./headless", "a script needs a first line such as `#!/bin/sh`"),
        ("/tmp", "is a folder"),
    ] {
        let refused = error(&project.tool(json!({"command": [program]})), json!({})).await;
        assert!(refused.starts_with(&format!("failed: the program `{program}`")) && refused.contains(message), "{refused}");
    }
}
