//! `helve prompt` and `helve parse` through the binary: what a model is told of its tools, and what its text means.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod folder;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::folder::{Project, echo, stderr, stdout};

const CLERK: (&str, &str) = ("agents/clerk.yaml", "name: clerk\ntools: [echo_one, calculate]\n");
const CLOCK: (&str, &str) = ("agents/clock.yaml", "name: clock\ntools: [get_time]\n");

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    project.write("tools/builtin/one.yaml", echo("echo_one").as_bytes());
    project
}

fn prompt(project: &Project, arguments: &[&str]) -> Value {
    let output = project.run(&[&["prompt", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn tools(prompt: &Value) -> Vec<&str> {
    prompt["tools"].as_array().expect("tools").iter().filter_map(Value::as_str).collect()
}

#[test]
fn without_agents_the_model_is_told_of_everything() {
    let shape = prompt(&project(&[]), &[]);
    assert_eq!((&shape["dialect"], &shape["language"], &shape["agent"]), (&json!("json"), &json!("en"), &Value::Null));
    for name in ["calculate", "echo_one", "get_date", "get_time"] {
        assert!(tools(&shape).contains(&name), "{shape}");
        assert!(shape["prompt"].as_str().expect("text").contains(&format!("\n## {name}\n")), "{shape}");
    }
}

#[test]
fn the_only_agent_answers_and_so_does_the_projects_own_choice() {
    let one = prompt(&project(&[CLERK]), &[]);
    assert_eq!((&one["agent"], tools(&one)), (&json!("clerk"), vec!["echo_one", "calculate"]));
    let chosen = prompt(&project(&[CLERK, CLOCK, ("helve.yaml", "agent: clock\n")]), &[]);
    assert_eq!((&chosen["agent"], tools(&chosen)), (&json!("clock"), vec!["get_time"]));
    let asked = prompt(&project(&[CLERK, CLOCK, ("helve.yaml", "agent: clock\n")]), &["--agent", "clerk"]);
    assert_eq!(asked["agent"], "clerk");
    let several = project(&[CLERK, CLOCK]).run(&["prompt"]);
    assert_eq!(several.status.code(), Some(1));
    assert!(stderr(&several).contains("several agents (clerk, clock): name one with --agent"), "{}", stderr(&several));
}

#[test]
fn an_unknown_agent_is_an_error_that_helps() {
    let project = project(&[CLERK]);
    let unknown = project.run(&["prompt", "--agent", "clrek", "--json"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("there is no agent `clrek`; did you mean `clerk`?"), "{}", stderr(&unknown));
    let shape: Value = serde_json::from_slice(&unknown.stdout).expect("JSON");
    assert_eq!(shape["error"]["kind"], "not_found");
    assert!(shape["error"]["details"]["hint"].as_str().is_some_and(|hint| hint.contains("`helve agents` lists agents")), "{shape}");
    assert_eq!(project.run(&["prompt", "--language", "fr"]).status.code(), Some(2));
}

#[test]
fn form_language_and_length_can_be_chosen() {
    let project = project(&[CLERK]);
    let people = stdout(&project.run(&["prompt", "--dialect", "xml", "--language", "zh"]));
    assert!(people.starts_with("# 可用工具\n") && people.contains("<text><![CDATA["), "{people}");
    let shape = prompt(&project, &["--dialect", "xml", "--language", "zh"]);
    assert_eq!((&shape["dialect"], &shape["language"]), (&json!("xml"), &json!("zh")));
    assert_eq!(people.trim_end(), shape["prompt"].as_str().expect("text"));
    let compact = stdout(&project.run(&["prompt", "--compact"]));
    assert!(compact.contains("\necho_one(text: string) - Gives back what it gets.\n"), "{compact}");
}

#[test]
fn the_example_calls_are_read_by_helve_parse() {
    let project = project(&[CLERK]);
    for dialect in ["json", "xml"] {
        let shape = prompt(&project, &["--dialect", dialect]);
        let text = shape["prompt"].as_str().expect("text");
        let (_, after) = text.split_once("## echo_one\n").expect("the tool");
        let (_, after) = after.split_once("Example:\n").expect("an example");
        let (example, _) = after.split_once("\n\n").expect("the end");
        let mut parse = project
            .command(&["parse", "--mode", "strict", "--dialect", dialect])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("helve runs");
        parse.stdin.take().expect("stdin").write_all(example.as_bytes()).expect("a pipe");
        let output = parse.wait_with_output().expect("helve ends");
        let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let call = &read["items"][0];
        assert_eq!((&call["type"], &call["name"]), (&json!("call"), &json!("echo_one")), "{read}");
        assert_eq!(call["arguments"], json!({"text": "example text"}));
    }
}

const ANSWER: &str =
    "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": \"2\",}}\n</tool_call>";
const TOOLS: &str = r#"[{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}]"#;

/// Runs `helve parse` with this on stdin.
fn parse(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_helve"))
        .arg("-C")
        .arg(folder)
        .arg("parse")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("helve starts");
    // A command that takes no input may be gone before it is written.
    let _ = child.stdin.take().expect("stdin").write_all(input);
    child.wait_with_output().expect("helve ends")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON on stdout")
}

#[test]
fn parse_tells_text_from_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let tools = folder.path().join("tools.json");
    fs::write(&tools, TOOLS).expect("written");
    let whole = parse(folder.path(), &["--tools", tools.to_str().expect("a path")], ANSWER.as_bytes());
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    let expected = json!({"items": [
        {"type": "text", "span": [0, 12], "text": "Let me see.\n"},
        {"type": "call", "span": [12, ANSWER.len()], "id": "call_1", "name": "get_weather", "arguments": {"city": "Paris", "days": 2},
         "repairs": ["trailing_comma", "coerced"]},
    ]});
    assert_eq!(document(&whole), expected);
    for chunk in ["1", "3", "-5"] {
        let pieces = parse(folder.path(), &["--tools", tools.to_str().expect("a path"), "--chunk", chunk], ANSWER.as_bytes());
        assert_eq!(document(&pieces), expected, "in pieces of {chunk}");
    }
    let strict = document(&parse(folder.path(), &["--mode", "strict", "--dialect", "hermes"], ANSWER.as_bytes()));
    assert_eq!(strict["items"][1]["type"], "malformed");
    assert_eq!(strict["items"][1]["kind"], "syntax");
}

#[test]
fn parse_takes_bytes_that_are_no_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = parse(folder.path(), &[], b"a\xffb<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\xe4\xb8");
    let items = document(&output)["items"].clone();
    assert_eq!(items[0], json!({"type": "text", "span": [0, 3], "text": "a\u{fffd}b"}));
    assert_eq!(items[1]["span"], json!([3, 56]));
    assert_eq!(items[2], json!({"type": "text", "span": [56, 58], "text": "\u{fffd}"}));
}

#[test]
fn parse_answers_each_line_of_a_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = "{\"id\": 1, \"text\": \"hi\"}\nnonsense\n{\"id\": 3, \"text\": \"[f()]\", \"dialect\": \"pythonic\", \"tools\": null, \"chunk\": 1}\n{\"id\": 4, \"text\": \"x\", \"dialect\": \"no\"}\n";
    let output = parse(folder.path(), &["--batch"], input.as_bytes());
    assert_eq!(output.status.code(), Some(1), "two lines were wrong");
    let lines: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("a document a line")).collect();
    assert_eq!(lines[0], json!({"id": 1, "items": [{"type": "text", "span": [0, 2], "text": "hi"}]}));
    assert_eq!(lines[1]["error"]["details"]["line"], 2);
    assert_eq!(lines[2]["items"][0]["name"], "f");
    assert_eq!(lines[3]["id"], 4);
    assert!(lines[3]["error"]["message"].as_str().is_some_and(|message| message.contains("no")));
}

#[test]
fn parse_lists_formats_and_knows_near_misses() {
    let folder = tempfile::tempdir().expect("a folder");
    let formats = document(&parse(folder.path(), &["--formats", "--json"], b""))["formats"].clone();
    assert_eq!(formats.as_array().map(Vec::len), Some(60));
    let output = parse(folder.path(), &["--dialect", "hermess"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `hermes`"), "{output:?}");
}
