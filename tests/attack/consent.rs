//! Calls in the queue that nobody trusted or approved.

#![cfg(unix)]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use helve_testkit::{Reply, Request, Script};
use serde_json::{Value, json};

use crate::folder::{Project, stderr};
use crate::scene::Scene;
use crate::stores::{REPORT, change};

/// Something that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(20);

/// What somebody could write into a store, so that a call of an agent or of nobody waits in it, or another call than a person made.
const FORGED: [(&str, &str); 4] = [
    ("nobody's", "UPDATE tasks SET body = json_remove(body, '$.consent')"),
    ("an agent's", "UPDATE tasks SET body = json_set(json_remove(body, '$.consent'), '$.caller.agent', 'helper')"),
    ("with other arguments", "UPDATE tasks SET body = json_set(body, '$.call.arguments.topic', 'secrets')"),
    (
        "under another id",
        "UPDATE tasks SET id = 'call_01M7GH0NV0ASXMH73GMC4XK7KR', body = json_set(body, '$.call.id', 'call_01M7GH0NV0ASXMH73GMC4XK7KR')",
    ),
];

impl Project {
    /// The only task of a store.
    fn task(&self, store: &str) -> Value {
        let tasks = self.json(&[store, "tasks", "--json"]);
        assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(1), "{tasks}");
        tasks["tasks"][0].clone()
    }

    /// The store that is used when none is named.
    fn helve(&self, arguments: &[&str]) -> Value {
        self.json(&[arguments, &["--json"]].concat())
    }

    fn work(&self) -> Value {
        self.helve(&["worker", "--until-empty"])["tasks_run"].clone()
    }
}

/// A process that is ended when nobody needs it any more.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a command that works on the queue, and waits until it has dealt with the only task.
fn dealt_with(project: &Project, mut command: std::process::Command, store: &str) -> Value {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("helve runs");
    let (_process, begun) = (Process(child), Instant::now());
    loop {
        let task = project.task(store);
        if task["state"] != "queued" && task["state"] != "running" {
            return task;
        }
        assert!(begun.elapsed() < LONGEST, "nobody deals with {task}");
    }
}

fn is_refused(task: &Value, what: &str) {
    let error = &task["outcome"]["error"];
    assert_eq!((&task["state"], &error["kind"]), (&json!("failed"), &json!("permission_denied")), "{what}: {task}");
    assert_eq!(error["details"]["reason"], "policy", "{what}: {task}");
    let retry = format!("helve tasks retry {}", task["id"].as_str().expect("an id"));
    assert!(error["message"].as_str().is_some_and(|message| message.contains("approval") && message.contains(&retry)), "{what}: {task}");
}

#[test]
fn a_forged_call_in_a_store_is_not_run_by_a_worker() {
    for (what, sql) in FORGED {
        let project = Project::new(&[REPORT]);
        let (file, store) = project.queued();
        change(&file, sql);
        let worked = project.run(&[&store, "worker", "--until-empty", "--json"]);
        assert!(worked.status.success(), "{what}: {}", stderr(&worked));
        is_refused(&project.task(&store), what);
        assert_eq!(project.ran(), 0, "{what}");
    }
}

#[test]
fn a_forged_call_in_a_store_is_not_run_while_somebody_talks_or_serves() {
    let (_, sql) = FORGED[0];
    let scene = Scene::new(Reply::text("hi")).with(REPORT.0, REPORT.1).untrusted();
    let (file, store) = scene.project.queued();
    change(&file, sql);
    is_refused(&dealt_with(&scene.project, scene.command(&[&store, "chat"]), &store), "chat");
    let project = Project::new(&[REPORT]);
    let (file, store) = project.queued();
    change(&file, sql);
    is_refused(&dealt_with(&project, project.command(&[&store, "mcp", "serve", "--stdio"]), &store), "mcp serve");
    assert_eq!((scene.project.ran(), project.ran()), (0, 0));
}

#[test]
fn a_persons_own_call_runs_in_a_folder_that_is_not_trusted() {
    let project = Project::new(&[REPORT]);
    assert_eq!(project.helve(&["tools", "call", "report", "topic=ants"])["status"], "accepted");
    assert_eq!((project.work(), project.ran()), (json!(1), 1));
}

/// An agent that makes one call of the tool.
fn reporter() -> Scene {
    let script = Script::from_fn(|request: &Request| match format!("{:?}", request.turns) {
        told if told.contains("in the background as task") => Reply::text("it will be made"),
        _ => Reply::calls([("report", json!({}))]),
    });
    Scene::new(script).with(REPORT.0, REPORT.1)
}

#[test]
fn an_agents_call_runs_only_as_long_as_the_folder_is_trusted() {
    for revoked in [false, true] {
        let scene = reporter();
        let project = &scene.project;
        assert!(project.run(&["trust", "--yes"]).status.success());
        let ran = scene.run(&["make it"]);
        assert_eq!(ran.stdout, "it will be made\n", "{}", ran.stderr);
        if !revoked {
            assert_eq!((project.work(), project.ran()), (json!(1), 1));
            continue;
        }
        assert!(project.run(&["trust", "--revoke"]).status.success());
        project.work();
        let task = project.helve(&["tasks"])["tasks"][0].clone();
        is_refused(&task, "not trusted any more");
        assert_eq!(project.ran(), 0);
        // Nothing is lost: a person can look at it and let it run.
        let again = project.helve(&["tasks", "retry", task["id"].as_str().expect("an id")]);
        assert_eq!(again["task"]["retry_of"], task["id"]);
        assert_eq!((project.work(), project.ran()), (json!(1), 1));
    }
}

#[test]
fn a_call_that_a_person_approved_for_an_agent_runs_once() {
    let scene = reporter();
    let ran = scene.run(&["--approve", "yes", "make it"]);
    assert_eq!(ran.stdout, "it will be made\n", "{}", ran.stderr);
    assert_eq!((scene.project.work(), scene.project.ran()), (json!(1), 1));
    assert_eq!((scene.project.work(), scene.project.ran()), (json!(0), 1));
}

#[test]
fn an_approval_runs_a_call_once() {
    let (path, text) = REPORT;
    let project = Project::new(&[(path, &format!("{text}permission: confirm\n"))]);
    let waiting = project.helve(&["tools", "call", "report"]);
    let id = waiting["approval_id"].as_str().expect("an id");
    assert_eq!((project.work(), project.ran()), (json!(0), 0), "nobody has approved it");
    assert_eq!(project.helve(&["approvals", "approve", id])["approval"]["state"], "approved");
    assert_eq!((project.work(), project.ran()), (json!(1), 1));
    project.helve(&["approvals", "approve", id]);
    assert_eq!((project.work(), project.ran()), (json!(0), 1));
}

#[test]
fn a_rule_that_denies_denies_what_a_person_queued() {
    let project = Project::new(&[REPORT]);
    assert_eq!(project.helve(&["tools", "call", "report"])["status"], "accepted");
    project.write("helve.yaml", b"permissions: [{tool: report, permission: deny}]\n");
    project.work();
    let task = &project.helve(&["tasks"])["tasks"][0];
    assert_eq!((&task["state"], &task["outcome"]["error"]["kind"]), (&json!("failed"), &json!("permission_denied")), "{task}");
    assert_eq!(project.ran(), 0);
}
