//! `helve prompt` through the binary: which tools a model is told of, in which form and language.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod folder;

use std::io::Write;
use std::process::Stdio;

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
    assert!(stderr(&several).contains("--agent (clerk, clock)"), "{}", stderr(&several));
}

#[test]
fn an_unknown_agent_is_an_error_that_helps() {
    let project = project(&[CLERK]);
    let unknown = project.run(&["prompt", "--agent", "clrek", "--json"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("there is no agent `clrek`"), "{}", stderr(&unknown));
    let shape: Value = serde_json::from_slice(&unknown.stdout).expect("JSON");
    assert_eq!(shape["error"]["kind"], "not_found");
    assert_eq!(shape["error"]["details"]["hint"], "did you mean `clerk`? helve agents lists all");
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
