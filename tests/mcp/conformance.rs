//! The official conformance suite, for both versions of the protocol that Helve speaks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::over_http::free_port;
use crate::peers::Peers;
use crate::running::{Running, until};
use crate::scene::{Scene, folder};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Names another command that gets a port and serves what the suite asks servers for there.
const FIXTURE: &str = "HELVE_TEST_MCP_FIXTURE";

/// A scenario that fails, and why. No revision requires one of them.
type Expected = (&'static str, &'static str);

const MACHINES: &str = "an extension for programs that log in without a person, or in the name of one; logins here are a person's";
const DPOP: &str = "an extension that binds tokens to a key, which is not supported";

const CLIENT: [Expected; 6] = [
    ("auth/client-credentials-jwt", MACHINES),
    ("auth/client-credentials-basic", MACHINES),
    ("auth/enterprise-managed-authorization", MACHINES),
    ("auth/wif-jwt-bearer", MACHINES),
    ("auth/dpop", DPOP),
    ("auth/dpop-nonce", DPOP),
];

/// All of them belong to the extension for tasks, which only the newer revision has.
const SERVER: [Expected; 4] = [
    (
        "tasks-lifecycle",
        "it wants a task that ends in an error of the protocol; a tool that crashes is a failed call, and its result says so",
    ),
    ("tasks-mrtr-input", "it wants a tool that runs in the background and asks; the programs of a folder cannot ask"),
    ("tasks-required-task-error", "no tool requires the client to know tasks: a client that does not waits for the result"),
    ("tasks-mrtr-composition", "it wants a tool that requires the client to know tasks, as above"),
];

/// The extension for tasks, with the programs of a folder.
const TASKS: [(&str, &str); 3] = [
    ("tools/builtin/greet.yaml", "name: greet\ndescription: Greets.\ncommand: [echo, 'Hello, {{name}}!']\nparameters: [{name: name}]\n"),
    (
        "tools/builtin/slow_compute.yaml",
        "name: slow_compute\ndescription: Waits.\ncommand: [sleep, '{{seconds}}']\n\
         parameters: [{name: seconds, type: integer}, {name: label, required: false}]\nmode: background\n",
    ),
    (
        "tools/builtin/failing_job.yaml",
        "name: failing_job\ndescription: Fails.\ncommand: [sh, -c, 'sleep 1; echo failed >&2; exit 1']\nmode: background\n",
    ),
];

/// Runs a part of the suite. What a revision requires must pass. Where there is a list, the scenarios that fail must be those on it:
/// another one is a regression, and one that passes is struck off the list.
fn expect(peers: &Peers, part: &[&str], list: Option<&[Expected]>) {
    let mut never_run: BTreeSet<&str> = list.into_iter().flatten().map(|(scenario, _)| *scenario).collect();
    for revision in REVISIONS {
        let out = folder();
        let mut suite = peers.conformance();
        suite.args(part).args(["--requirements", revision, "--timeout", "60000", "-o"]).arg(out.path());
        let (status, stdout, stderr) = Running::start(&mut suite).finish();
        let Some((_, summary)) = stdout.split_once("SUMMARY") else { panic!("{revision}: no summary: {stdout}{stderr}") };
        let with = |mark: &str| -> BTreeSet<&str> {
            summary.lines().filter_map(|line| line.strip_prefix(mark)?.split_once(": ")).map(|(scenario, _)| scenario.trim()).collect()
        };
        let (passed, failed) = (with("\u{2713}"), with("\u{2717}"));
        assert!(status.success() && passed.len() > 10, "a scenario that is required fails: {revision}: {summary}{stderr}");
        let Some(list) = list else { continue };
        // Not every revision has every extension.
        let is_run = |scenario: &&str| passed.contains(scenario) || failed.contains(scenario);
        let expected: BTreeSet<&str> = list.iter().map(|(scenario, _)| *scenario).filter(is_run).collect();
        assert_eq!(failed, expected, "what fails is not what is expected to: {revision}: {summary}{stderr}");
        never_run.retain(|scenario| !expected.contains(scenario));
    }
    assert!(never_run.is_empty(), "the suite does not have these: {never_run:?}");
}

/// An example of `helve-mcp`, which is built with the tests of the workspace.
fn example(test: &str, name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_helve")).with_file_name("examples").join(name);
    if !program.exists() {
        helve_testkit::skip(test, format!("{name} is not built (cargo build -p helve-mcp --examples)"));
    }
    program.exists().then_some(program)
}

#[test]
fn the_client_passes_what_is_required() {
    let test = "the_client_passes_what_is_required";
    let Some(peers) = Peers::find(test) else { return };
    let Some(driver) = example(test, "conformance_client") else { return };
    expect(&peers, &["client", "--command", &driver.to_string_lossy()], Some(&CLIENT));
}

#[test]
fn the_server_passes_what_is_required() {
    let test = "the_server_passes_what_is_required";
    let Some(peers) = Peers::find(test) else { return };
    let other = std::env::var(FIXTURE).ok();
    let words = match &other {
        Some(command) => Some(command.split_whitespace().map(str::to_owned).collect()),
        None => example(test, "conformance_server").map(|program| vec![program.to_string_lossy().into_owned()]),
    };
    let (Some(words), port): (Option<Vec<String>>, _) = (words, free_port()) else { return };
    let _fixture = Running::start(Command::new(&words[0]).args(&words[1..]).arg(port.to_string()));
    until("the fixture", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    let file = json!({"url": format!("http://127.0.0.1:{port}/mcp"), "trusted": true, "prefix": ""});
    let scene = Scene::new(&TASKS).with("fixture", file).agreed();
    let (_server, address) = scene.serve(&["--gateway"]);
    // The list is about what our own fixture has.
    expect(&peers, &["server", "--url", &address], other.is_none().then_some(&SERVER[..]));
}
