//! Variables in files of a folder: they reach no model and no rule, and the trust question names them.

use helve_testkit::{Reply, Request, Script};
use serde_json::{Value, json};

use crate::folder::{Project, stderr, stdout};
use crate::folders::{DOCUMENT, SECRET, question, trust};
use crate::scene::Scene;
use crate::trap::Trap;

/// Variables are expanded nowhere that a model reads, in a folder that is trusted as little as in one that is not.
#[test]
fn variables_do_not_reach_models() {
    let trap = Trap::set();
    for trusted in [false, true] {
        let scene = Scene::new(Script::new().reply(Reply::text("done")))
            .with("agents/a.yaml", "name: a\ndescription: x ${MY_API_KEY}\ninstructions: The code is ${MY_API_KEY}.\ntools: [report]\n")
            .with(
                "tools/native/report.yaml",
                &format!(
                    "name: report\ndescription: Takes ${{MY_API_KEY}}\napi_url: {}\nparameters: [{{name: code, description: \"${{MY_API_KEY}}\"}}]\n",
                    trap.url("/")
                ),
            );
        let scene = if trusted { scene } else { scene.untrusted() };
        let ran = scene.command(&["run", "hello"]).env("MY_API_KEY", SECRET).output().expect("helve runs");
        assert!(ran.status.success(), "{}", stderr(&ran));
        let asked = format!("{:?}", scene.server.requests());
        assert!(asked.contains("The code is ${MY_API_KEY}.") && !asked.contains(SECRET), "{asked}");
        let listed = scene.command(&["tools", "--json"]).env("MY_API_KEY", SECRET).output().expect("helve runs");
        assert!(!stdout(&listed).contains(SECRET), "{}", stdout(&listed));
    }
}

/// What tools are called and how their results are worded is read by models, also where the folder is trusted.
#[test]
fn variables_reach_models_by_no_prefix_and_no_result() {
    let trap = Trap::set();
    let script = Script::from_fn(|request: &Request| match request.results()[..] {
        [] => Reply::calls([("report", json!({}))]),
        _ => Reply::text("done"),
    });
    let scene = Scene::new(script)
        .with(
            "tools/native/report.yaml",
            &format!(
                "name: report\ndescription: x\napi_url: {}\nresult: \"it is ${{PLAIN_VALUE}} {{{{ 1 + 1 }}}}\"\npermission: auto\n",
                trap.url("/")
            ),
        )
        .with("tools/native/hub.yaml", "openapi: doc.json\nprefix: \"${PLAIN_VALUE}\"\n")
        .with("tools/native/doc.json", DOCUMENT)
        .with("tools/mcp/m.yaml", &format!("name: m\nmcp_server_url: {}\nprefix: \"${{PLAIN_VALUE}}\"\n", trap.url("/")));
    let run = |words: &[&str]| scene.command(words).env("PLAIN_VALUE", "leaked").output().expect("helve runs");
    let ran = run(&["run", "hello"]);
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert_eq!(scene.told(), ["it is ${PLAIN_VALUE} 2"]);
    let asked = format!("{:?}", scene.server.requests());
    let shown = stdout(&run(&["tools", "--json"]));
    assert!(!asked.contains("leaked") && !shown.contains("leaked"), "{asked}\n{shown}");
}

/// `$${NAME}` is the text `${NAME}`, wherever it stands, in a folder that is trusted as in one that is not.
#[test]
fn an_escaped_variable_is_a_text() {
    let tool = "name: t\ndescription: \"says $${PLAIN_VALUE}\"\ncommand: [printf, \"%s %s\", \"$${PLAIN_VALUE}\", \"${PLAIN_VALUE}\"]\nstdin: none\n";
    let project = Project::new(&[("tools/builtin/t.yaml", tool)]);
    let run = |words: &[&str]| project.command(words).env("PLAIN_VALUE", "expanded").output().expect("helve runs");
    for trusted in [false, true] {
        if trusted {
            trust(&project);
        }
        let called: Value = serde_json::from_slice(&run(&["tools", "call", "t", "--yes", "--json"]).stdout).expect("an outcome");
        assert_eq!(called["text"], "${PLAIN_VALUE} expanded", "trusted: {trusted}");
        let shown = stdout(&run(&["tools", "show", "t"]));
        assert!(shown.contains("says ${PLAIN_VALUE}") && !shown.contains("$${"), "trusted: {trusted}: {shown}");
    }
    let (asked, shown) = question(&Project::new(&[("tools/builtin/t.yaml", &tool.replace(", \"${PLAIN_VALUE}\"]", "]"))]));
    assert!(!shown.to_string().contains("\"variables\":[\"PLAIN_VALUE\"") && !asked.contains("reads PLAIN_VALUE"), "{asked}\n{shown}");
}

/// Rules are read by models, too: they see why a call was refused.
#[test]
fn variables_do_not_reach_rules() {
    let project =
        Project::new(&[("helve.yaml", "permissions: [{tool: calculate, permission: deny, because: \"it is ${PLAIN_VALUE}\"}]\n")]);
    trust(&project);
    let denied = project.command(&["tools", "call", "calculate", "expression=1", "--json"]).env("PLAIN_VALUE", SECRET).output();
    let denied = stdout(&denied.expect("helve runs"));
    assert!(denied.contains("${PLAIN_VALUE}") && !denied.contains(SECRET), "{denied}");
}

/// A variable is named wherever it stands, and an address is shown whole where one stands in it.
#[test]
fn the_question_names_variables_wherever_they_stand() {
    let document = r#"{"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {"/a": {"get": {"operationId": "a", "responses": {}}}},
        "servers": [{"url": "{scheme}://{host}/v1", "variables": {"scheme": {"default": "http"}, "host": {"default": "real.example"}}}]}"#;
    let project = Project::new(&[
        ("helve.yaml", "model: \"http://one.example/v1?k=${ONE_TOKEN}#m\"\napprovals: {webhook: \"http://two.example/?k=${TWO_TOKEN}\"}\n"),
        ("tools/mcp/m.yaml", "name: m\ncommand: [cat]\ntools: {c: {arguments: {key: \"${THREE_TOKEN}\"}}}\n"),
        ("tools/native/n.yaml", "name: n\ndescription: x\napi_url: \"http://${SHLVL:-good.example/?}27.0.0.1/x\"\n"),
        ("tools/native/api.yaml", "openapi: doc.json\n"),
        ("tools/native/doc.json", document),
    ]);
    let (asked, _) = question(&project);
    for expected in ["ONE_TOKEN", "TWO_TOKEN", "THREE_TOKEN", "?}27.0.0.1/x", "http://real.example/v1"] {
        assert!(asked.contains(expected), "{expected}: {asked}");
    }
}

/// A tool that is made when it is called is made of the files that the person was asked about.
#[test]
fn a_script_of_a_tool_with_variables_does_not_change_behind_the_question() {
    let tool = "name: y\ndescription: x\ncommand: [sh, \"${NOT_SET_ANYWHERE:-run.sh}\"]\n";
    let scene = Scene::new(Script::from_fn(|request: &Request| match request.results()[..] {
        [] => Reply::calls([("y", json!({}))]),
        _ => Reply::text("done"),
    }))
    .with("tools/builtin/y.yaml", tool)
    .with("run.sh", "echo one\n")
    .untrusted();
    let waiting = scene.events(&["go"]);
    assert_eq!(waiting.code, Some(3), "{}", waiting.stderr);
    let asked = &waiting.data("permission_request")[0];
    assert!(asked["reason"].as_str().is_some_and(|reason| reason.contains("run.sh")), "it says what would run: {asked}");
    let approval = asked["approval_id"].as_str().expect("an id").to_owned();
    assert!(scene.command(&["approvals", "approve", &approval]).output().expect("helve runs").status.success());
    scene.project.write("run.sh", b"touch ran\n");
    let run = waiting.events[0]["run_id"].as_str().expect("an id").to_owned();
    let _ = scene.command(&["run", "--resume", &run]).output().expect("helve runs");
    assert!(!scene.project.folder.path().join("ran").exists(), "nobody agreed to this");
}
