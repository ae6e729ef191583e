//! How arguments reach a program: as JSON on stdin or as command arguments only.

use serde_json::{Value, json};

use crate::support::{Project, call, error, runs, text};

/// A shell would interpret each of these.
const HOSTILE: [&str; 9] = [
    "; rm -rf .",
    "$(touch pwned)",
    "`touch pwned`",
    "a\ntouch pwned",
    "| touch pwned",
    "&& touch pwned",
    "' ; touch pwned ; '",
    "*",
    "> pwned",
];

#[tokio::test]
async fn json_goes_in_and_comes_out() {
    let project = Project::new();
    let arguments = json!({"z": 1, "a": ["ü", null, {"deep": true}], "quote": "\"'\\\n"});
    let output = call(&project.sh("cat"), arguments.clone()).await.expect("an output");
    assert_eq!(output.data, arguments);
    assert_eq!(text(&project.sh("wc -l | tr -d ' '"), json!({"a": "x\ny"})).await, "1", "one line, then the end");
}

#[tokio::test]
async fn a_python_script_is_a_tool() {
    if !runs("a_python_script_is_a_tool", "python3", &["-c", ""]) {
        return;
    }
    let project = Project::new();
    let script = "import json, sys\narguments = json.load(sys.stdin)\nprint(json.dumps({'greeting': 'Hello ' + arguments['name']}))\n";
    project.write("hello.py", script, "644");
    let tool = project.tool(json!({"command": ["python3", "hello.py"], "parameters": [{"name": "name"}]}));
    assert_eq!(call(&tool, json!({"name": "Ada"})).await.expect("an output").data, json!({"greeting": "Hello Ada"}));
}

#[tokio::test]
async fn templates_become_words() {
    let project = Project::new();
    let tool = project.tool(json!({
        "command": ["printf", "<%s>", "{{ text }}", "{{ n }}", "at:{{ place.city }}", "{{ list }}", "{{ '{{' }}.X}}", "--limit={{ limit }}", "{{ more }}"],
        "parameters": [
            {"name": "text"}, {"name": "n", "type": "integer"}, {"name": "place", "type": "object"}, {"name": "list", "type": "array"},
            {"name": "limit", "type": "integer", "required": false}, {"name": "more", "required": false}
        ]
    }));
    let mut arguments = json!({"text": "a b  c", "n": 3, "place": {"city": "Köln"}, "list": [1, {"x": "y"}]});
    assert_eq!(text(&tool, arguments.clone()).await, r#"<a b  c><3><at:Köln><[1,{"x":"y"}]><{{.X}}>"#);
    arguments["limit"] = json!(5);
    arguments["more"] = json!("");
    assert_eq!(text(&tool, arguments).await, r#"<a b  c><3><at:Köln><[1,{"x":"y"}]><{{.X}}><--limit=5><>"#);
}

#[tokio::test]
async fn hostile_values_stay_text() {
    let project = Project::new();
    project.write("keep", "me", "644");
    let template = |command: Value| project.tool(json!({"command": command, "parameters": [{"name": "v"}]}));
    let alone = template(json!(["printf", "%s", "{{ v }}"]));
    let inside = template(json!(["printf", "%s", "x{{ v }}x"]));
    let shell = template(json!(["sh", "-c", "printf %s \"$1\"", "sh", "{{ v }}"]));
    for hostile in HOSTILE {
        assert_eq!(text(&alone, json!({"v": hostile})).await, hostile);
        assert_eq!(text(&inside, json!({"v": hostile})).await, format!("x{hostile}x"));
        assert_eq!(text(&shell, json!({"v": hostile})).await, hostile);
        assert!(project.has("keep") && !project.has("pwned"), "{hostile}");
    }
}

#[tokio::test]
async fn values_are_never_options() {
    let project = Project::new();
    let open = project.tool(json!({"command": ["ls", "{{ v }}"], "parameters": [{"name": "v"}]}));
    for option in ["-la", "--help", "-", "--"] {
        let refused = error(&open, json!({"v": option})).await;
        assert!(refused.starts_with("invalid_parameters: `v` starts with `-`"), "{refused}");
    }
    let closed = project.tool(json!({"command": ["printf", "--", "%s", "{{ v }}"], "parameters": [{"name": "v"}]}));
    assert_eq!(text(&closed, json!({"v": "-la"})).await, "-la");
}

#[tokio::test]
async fn values_that_no_program_can_take_are_refused() {
    let project = Project::new();
    let tool = project.tool(json!({"command": ["printf", "%s", "{{ v }}"], "parameters": [{"name": "v"}]}));
    assert!(error(&tool, json!({"v": "a\0b"})).await.starts_with("invalid_parameters: `v` contains a NUL character"));
    assert!(error(&tool, json!({"v": "x".repeat(1 << 20)})).await.starts_with("invalid_parameters: the arguments are too long"));
}

#[tokio::test]
async fn with_templates_stdin_is_empty_unless_wanted() {
    let project = Project::new();
    let tool = |stdin: Value| {
        project
            .tool(json!({"command": ["sh", "-c", "cat; printf %s \"$1\"", "sh", "{{ v }}"], "stdin": stdin, "parameters": [{"name": "v"}]}))
    };
    assert_eq!(text(&tool(Value::Null), json!({"v": "x"})).await, "x");
    assert_eq!(text(&tool(json!("json")), json!({"v": "x"})).await, "{\"v\":\"x\"}\nx");
    let silent = project.tool(json!({"command": ["cat"], "stdin": "none"}));
    assert_eq!(text(&silent, json!({})).await, "");
}

#[tokio::test]
async fn a_program_need_not_read_what_it_is_given() {
    let project = Project::new();
    let large = json!({"text": "x".repeat(1 << 20)});
    for script in ["exec 0<&-; echo done", "echo done", "head -c 10 >/dev/null; echo done"] {
        assert_eq!(text(&project.sh(script), large.clone()).await, "done", "{script}");
    }
}

/// Both sides write more than fits a pipe; without concurrent reading they would deadlock.
#[tokio::test]
async fn reading_and_writing_do_not_wait_for_each_other() {
    let project = Project::new();
    let script = "head -c 500000 /dev/zero | tr '\\0' x; head -c 500000 /dev/zero >&2; wc -c | tr -d ' '";
    let said = text(&project.sh(script), json!({"text": "y".repeat(900_000)})).await;
    assert_eq!(said.trim_start_matches('x'), (900_000 + r#"{"text":""}"#.len() + 1).to_string());
}
