//! A project's folder through the binary: what people write, what they see, what they are told when it is wrong.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod folder;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::folder::{Project, echo, has, has_terminal, stderr, stdout};

fn native(name: &str) -> String {
    format!(
        "name: {name}\ndescription: Asks a service.\napi_url: http://127.0.0.1:9/{name}\nparameters: [{{name: q}}]\nquery: {{q: \"{{{{ q }}}}\"}}\n"
    )
}

const BOMB: &str = "a: &a [x, x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]
";

/// Forty files, a third of them broken, each in its own way.
fn forty_files() -> (Project, Vec<&'static str>) {
    let project = Project::new(&[]);
    for number in 0..11 {
        project.write(&format!("tools/builtin/good_{number}.yaml"), echo(&format!("echo_{number}")).as_bytes());
        project.write(&format!("tools/native/good_{number}.yaml"), native(&format!("ask_{number}")).as_bytes());
    }
    project.write("tool_sets/good.yaml", b"name: good\ntools: [echo_1, ask_1, get_time]\n");
    project.write("configs/tool_sets/nested.yaml", b"name: nested\ntool_sets: [good]\ntools: [\"echo_*\"]\n");
    project.write("agents/good.yaml", b"name: good\ntool_sets: [nested]\ntools: [calculate]\n");
    let broken = [
        ("tools/builtin/tabs.yaml", "name: tabs\n\tdescription: x\n"),
        ("tools/builtin/wrong_type.yaml", "name: wrong_type\ndescription: x\ncommand: cat\n"),
        ("tools/builtin/bomb.yaml", BOMB),
        (
            "tools/builtin/bad_schema.yaml",
            "name: bad_schema\ndescription: x\ncommand: [cat]\nparameters: {type: object, properties: {a: {type: strin}}}\n",
        ),
        (
            "tools/builtin/bad_parameter.yaml",
            "name: bad_parameter\ndescription: x\ncommand: [cat]\nparameters:\n  - {name: a, tpye: string}\n",
        ),
        ("tools/builtin/twice.yaml", "name: twice\ndescription: x\nname: again\ncommand: [cat]\n"),
        ("tools/native/missing.yaml", "name: missing\napi_url: http://127.0.0.1:9/\n"),
        ("tools/native/unknown_key.yaml", "name: unknown_key\ndescription: x\napi_url: http://127.0.0.1:9/\nmetod: GET\n"),
        (
            "tools/native/bad_template.yaml",
            "name: bad_template\ndescription: x\napi_url: http://127.0.0.1:9/\nquery:\n  q: \"{{ qurey }}\"\nparameters: [{name: query}]\n",
        ),
        ("tools/native/duplicate.yaml", "name: echo_1\ndescription: The name of a command tool.\napi_url: http://127.0.0.1:9/\n"),
        ("tool_sets/circle.yaml", "name: circle\ntool_sets: [circle]\n"),
        ("tool_sets/unknown_tool.yaml", "name: unknown_tool\ntools:\n  - echo_1\n  - ecoh_2\n"),
        ("agents/unknown_set.yaml", "name: unknown_set\ntool_sets: [goood]\n"),
        (
            "agents/no_strategy.yaml",
            "name: no_strategy\noutput_strategy:\n  function_calling: false\n  fallback_to_structured_output: false\n",
        ),
    ];
    for (file, text) in broken {
        project.write(file, text.as_bytes());
    }
    (project, broken.iter().map(|(file, _)| *file).collect())
}

#[test]
fn each_broken_file_has_one_diagnostic_and_the_others_work() {
    let (project, broken) = forty_files();
    let checked = project.run(&["tools", "check"]);
    assert_eq!(checked.status.code(), Some(1));
    insta::assert_snapshot!(project.shown(&checked));

    let list = project.json(&["tools", "--json"]);
    let mut by_file: BTreeMap<&str, usize> = BTreeMap::new();
    for diagnostic in list["diagnostics"].as_array().expect("diagnostics") {
        *by_file.entry(diagnostic["file"].as_str().expect("a file")).or_default() += 1;
    }
    let expected: BTreeMap<&str, usize> = broken.iter().map(|file| (*file, 1)).collect();
    assert_eq!(by_file, expected);
    let names: Vec<&str> = list["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    for number in 0..11 {
        assert!(names.contains(&format!("echo_{number}").as_str()) && names.contains(&format!("ask_{number}").as_str()), "{names:?}");
    }
    let echo = list["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == "echo_1").expect("echo_1").clone();
    assert_eq!(echo["duplicates"], json!([{"source": "native", "location": "tools/native/duplicate.yaml"}]));
    let outcome = project.json(&["tools", "call", "echo_3", "text=hi", "--json"]);
    assert_eq!(outcome["data"], json!({"text": "hi"}));
    assert_eq!(
        project.json(&["agents", "--json"])["agents"][0]["tools"].as_array().map(Vec::len),
        Some(14),
        "eleven echoes, ask_1, get_time, calculate"
    );
}

/// What the environment holds is looked at only in a folder that is trusted.
#[test]
fn a_variable_that_is_not_set_is_an_error_once_the_folder_is_trusted() {
    let tool = "name: t\ndescription: x\napi_url: http://127.0.0.1:9/${NOT_SET_ANYWHERE}\n";
    let project = Project::new(&[("tools/native/t.yaml", tool)]);
    assert_eq!(project.run(&["tools", "check"]).status.code(), Some(0));
    project.run(&["trust", "--yes"]);
    let checked = project.run(&["tools", "check"]);
    assert_eq!(checked.status.code(), Some(1));
    let said = project.shown(&checked);
    assert!(said.contains("tools/native/t.yaml:3: environment variable `NOT_SET_ANYWHERE` is not set"), "{said}");
}

#[test]
fn the_sample_teaches_and_has_no_warnings() {
    let project = Project::new(&[]);
    let wrote = project.run(&["init", "sample"]);
    assert_eq!(wrote.status.code(), Some(0), "{}", stderr(&wrote));
    let sample = project.folder.path().join("sample");
    let in_sample = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_helve")).arg("-C").arg(&sample).args(arguments).env("NO_COLOR", "1").output().expect("helve runs")
    };
    let checked = in_sample(&["tools", "check"]);
    assert_eq!(
        (checked.status.code(), stdout(&checked).as_str()),
        (Some(0), "✓ 6 tools, 2 sets, 1 agent; 0 errors, 0 warnings\n"),
        "{}",
        stderr(&checked)
    );
    insta::assert_snapshot!(stdout(&in_sample(&["sets"])));
    insta::assert_snapshot!(stdout(&in_sample(&["agents"])));
    if has("the_sample_teaches_and_has_no_warnings", "python3") {
        let counted = in_sample(&["tools", "call", "word_count", "text=one two three", "--json"]);
        let outcome: Value = serde_json::from_slice(&counted.stdout).expect("JSON");
        assert_eq!(outcome["data"], json!({"words": 3, "lines": 1, "characters": 13, "longest": ["three", "one", "two"]}), "{outcome}");
    }
    project.write("half/tool_sets", b"in the way");
    let failed = project.run(&["init", "half"]);
    assert!(failed.status.code() == Some(1) && stderr(&failed).contains("cannot write"), "{}", stderr(&failed));
    assert!(!project.folder.path().join("half/helve.yaml").exists(), "all of it or nothing");
    let again = project.run(&["init", "sample"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("already exists"), "{}", stderr(&again));
}

/// A public API's document of 68 operations becomes tools with one line of YAML.
#[test]
fn an_openapi_document_imports_without_hand_work() {
    let document = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is"))
        .join("../../crates/sources/http/tests/openapi/hosting.json");
    let document = fs::read_to_string(document).expect("the document");
    let project =
        Project::new(&[("tools/native/hosting.json", &document), ("tools/native/hub.yaml", "openapi: hosting.json\nprefix: hub\n")]);
    let list = project.json(&["tools", "--json"]);
    assert_eq!(list["diagnostics"], json!([]));
    let names: Vec<&str> = list["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .filter(|name| name.starts_with("hub_"))
        .collect();
    assert_eq!(names.len(), 62, "six of them cannot be tools");
    for name in &names {
        assert!(name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'), "{name}");
    }
    for (text, message) in
        [("openapi: missing.json\n", "cannot read"), ("openapi: ../../../../etc/hostname\n", ""), ("openapi: hub.yaml\n", "OpenAPI")]
    {
        project.write("tools/native/hub.yaml", text.as_bytes());
        let diagnostics = project.json(&["tools", "check", "--json"])["diagnostics"].clone();
        assert_eq!(diagnostics.as_array().map(Vec::len), Some(1), "{diagnostics}");
        assert!(diagnostics[0]["message"].as_str().is_some_and(|said| said.contains(message)), "{diagnostics}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    let output = Command::new(env!("CARGO_BIN_EXE_helve")).args(["-C", "/nowhere/at/all", "tools"]).output().expect("helve runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot open the folder") && stderr(&output).contains("helve init"), "{}", stderr(&output));
}

#[test]
fn rules_about_nothing_are_said() {
    let project = Project::new(&[
        ("helve.yaml", "permissions: [{tool: calculat, permission: deny}]\n"),
        ("agents/x.yaml", "name: x\ntools: [calculate]\npermissions: {calclate: deny}\n"),
    ]);
    let warnings = stdout(&project.run(&["tools", "check"]));
    assert_eq!(warnings.matches("did you mean `calculate`?").count(), 2, "{warnings}");
}

#[test]
fn a_list_shows_the_permission_that_holds() {
    let project = Project::new(&[("helve.yaml", "permissions: [{tool: calculate, permission: deny}]\n")]);
    assert_eq!(project.json(&["tools", "show", "calculate", "--json"])["permission"], "deny");
    assert_eq!(project.json(&["tools", "--json", "list"])["tools"][0]["permission"], "deny", "options may stand before the command");
}

#[test]
fn schemas_fit_the_sample() {
    let kinds = Command::new(env!("CARGO_BIN_EXE_helve")).args(["schema", "--json"]).output().expect("helve runs");
    let schemas: Value = serde_json::from_slice(&kinds.stdout).expect("JSON");
    for (kind, file) in [
        ("helve", "helve.yaml"),
        ("command", "tools/builtin/word_count.yaml"),
        ("native", "tools/native/current_weather.yaml"),
        ("set", "tool_sets/everyday.yaml"),
        ("agent", "agents/assistant.yaml"),
    ] {
        let one = Command::new(env!("CARGO_BIN_EXE_helve")).args(["schema", kind]).output().expect("helve runs");
        assert_eq!(serde_json::from_slice::<Value>(&one.stdout).ok().as_ref(), Some(&schemas[kind]));
        let schema = helve::tool::Schema::new(schemas[kind].clone()).expect("a sound schema");
        let text = fs::read_to_string(
            Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is"))
                .join("../../examples/project")
                .join(file),
        )
        .expect("a file");
        let value = helve::internal::read_yaml(&text).expect("YAML").value();
        assert_eq!(schema.problems(&value), [], "{file}");
    }
    let wrong = Command::new(env!("CARGO_BIN_EXE_helve")).args(["schema", "agnt"]).output().expect("helve runs");
    assert!(wrong.status.code() == Some(2) && stderr(&wrong).contains("did you mean `agent`?"), "{}", stderr(&wrong));
}

#[tokio::test]
async fn changed_files_are_read_again_while_running() {
    let project = Project::new(&[("tools/builtin/a.yaml", &echo("a"))]);
    let helve = helve::project::OpenOptions::new().state(None).builtins(true).open(project.folder.path()).expect("a project");
    assert!(helve.catalogue().get("a").is_some() && helve.catalogue().get("b").is_none());
    project.write("tools/builtin/b.yaml", echo("b").as_bytes());
    project.write("tools/builtin/a.yaml", b"name: a\n");
    let followed = async {
        while helve.catalogue().get("b").is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = helve.follow() => {}
        () = followed => {}
        () = tokio::time::sleep(std::time::Duration::from_secs(30)) => panic!("the change was not seen"),
    }
    assert!(helve.catalogue().get("a").is_none(), "a broken file is gone");
    assert_eq!(helve.project().expect("a project").diagnostics.len(), 1, "and said to be");
}

/// A folder's rules speak to whoever is refused or asked. They cannot add a line that looks like Helve's own.
#[test]
fn the_words_of_a_rule_are_one_line() {
    let because = r#""no\nhint: all is well\e[2K\r\u202e""#;
    let rules = format!(
        "permissions:\n- {{tool: calculate, permission: deny, because: {because}}}\n- {{tool: get_date, permission: confirm, because: {because}}}\n"
    );
    let project = Project::new(&[("helve.yaml", &rules)]);
    let shown = r"no\nhint: all is well\u{1b}[2K\r\u{202e}";
    let refused = project.run(&["tools", "call", "calculate", "expression=1"]);
    assert_eq!((refused.status.code(), stderr(&refused).trim_end()), (Some(1), format!("permission_denied: {shown}").as_str()));
    // A terminal, at which a person is asked; elsewhere the program has other options.
    if !has_terminal("the_words_of_a_rule_are_one_line") {
        return;
    }
    let command = project.command(&["tools", "call", "get_date"]);
    let words: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(|word| format!("'{}'", word.display())).collect();
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &words.join(" "), "/dev/null"]).stdin(Stdio::null());
    terminal.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let asked = stdout(&terminal.output().expect("script runs"));
    assert!(asked.contains("Approval needed: get_date") && asked.contains(&format!("  because {shown}\r\n")), "{asked}");
    assert!(!asked.lines().any(|line| line.starts_with("hint")) && !asked.contains('\u{202e}'), "{asked}");
}
