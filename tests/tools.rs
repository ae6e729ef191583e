//! `helve tools` through the binary, as a person and as a program sees it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn helve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helve"));
    command.args(arguments).env_remove("HELVE_LOG").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    helve(arguments).output().expect("helve runs")
}

fn status(output: &Output) -> Option<i32> {
    output.status.code()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

#[test]
fn the_catalogue_for_people() {
    insta::assert_snapshot!(stdout(&run(&["tools"])));
    assert_eq!(stdout(&run(&["tools", "list"])), stdout(&run(&["tools"])));
}

#[test]
fn the_catalogue_for_programs() {
    let list = json_of(&run(&["tools", "--json"]));
    insta::assert_snapshot!(serde_json::to_string_pretty(&list).expect("JSON"));
}

#[test]
fn one_tool_for_people() {
    insta::assert_snapshot!(stdout(&run(&["tools", "show", "calculate"])));
    insta::assert_snapshot!(stdout(&run(&["tools", "show", "get_time"])));
}

#[test]
fn one_tool_for_programs_is_the_row_of_the_list() {
    let list = json_of(&run(&["--json", "tools"]));
    let shown = json_of(&run(&["tools", "show", "get_date", "--json"]));
    assert_eq!(list["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == "get_date"), Some(&shown));
}

#[test]
fn a_call_prints_the_result_and_nothing_else() {
    let output = run(&["tools", "call", "calculate", "expression=2^64 + 1"]);
    assert_eq!((status(&output), stdout(&output), stderr(&output)), (Some(0), "18446744073709551617\n".into(), String::new()));
}

#[test]
fn arguments_come_as_pairs_json_or_on_stdin() {
    for arguments in [r#"{"expression":"6*7"}"#, "expression=6*7"] {
        assert_eq!(stdout(&run(&["tools", "call", "calculate", arguments])), "42\n");
    }
    let mut child = helve(&["tools", "call", "calculate", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("helve runs");
    child.stdin.take().expect("stdin").write_all(br#"{"expression": "6*7"}"#).expect("written");
    assert_eq!(stdout(&child.wait_with_output().expect("an end")), "42\n");
}

#[test]
fn an_outcome_has_the_shape_of_the_contract() {
    let mut outcome = json_of(&run(&["tools", "call", "calculate", "expression=6*7", "--json"]));
    assert!(outcome["call_id"].as_str().is_some_and(|id| id.starts_with("call_")));
    assert!(outcome["duration_ms"].as_f64().is_some_and(|duration| duration > 0.0));
    outcome["call_id"] = json!("call");
    outcome["duration_ms"] = json!(1);
    assert_eq!(
        outcome,
        json!({"call_id": "call", "tool": "calculate", "status": "done", "success": true, "text": "42",
               "data": {"result": "42", "exact": true}, "error": null, "metadata": {}, "duration_ms": 1})
    );
}

#[test]
fn failures_say_what_where_and_what_next() {
    for (arguments, code, words) in [
        (&["tools", "call", "calculte", "expression=1"][..], 1, &["unknown_tool", "did you mean `calculate`?"][..]),
        (
            &["tools", "call", "calculate", "expresion=1"],
            1,
            &["invalid_parameters", "/expresion", "did you mean `expression`?", "helve tools show calculate"],
        ),
        (&["tools", "call", "calculate", "expression=2 +"], 1, &["failed", "cannot calculate"]),
        (&["tools", "call", "calculate", "2+2"], 2, &["neither `key=value` nor a JSON object", "hint:"]),
        (&["tools", "call", "calculate", "{bad"], 2, &["not valid JSON", "quote the JSON"]),
        (&["tools", "call", "calculate", "a=1", "a=2"], 2, &["duplicate argument"]),
        (&["tools", "show", "get_tim"], 1, &["there is no tool `get_tim`", "did you mean `get_time`?"]),
        (&["tools", "show", "zzz"], 1, &["`helve tools` lists all tools"]),
        (&["tools", "cal"], 2, &["call"]),
        (&["toools"], 2, &["tools"]),
        (&["tools", "call"], 2, &["NAME"]),
    ] {
        let output = run(arguments);
        assert_eq!(status(&output), Some(code), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
        for word in words {
            assert!(stderr(&output).contains(word), "{arguments:?} does not say {word}: {}", stderr(&output));
        }
    }
}

#[test]
fn failures_are_json_for_programs() {
    let outcome = json_of(&run(&["tools", "call", "calculte", "--json"]));
    assert_eq!(
        (&outcome["status"], &outcome["success"], &outcome["error"]["kind"]),
        (&json!("done"), &json!(false), &json!("unknown_tool"))
    );
    let shown = run(&["tools", "show", "calculte", "--json"]);
    assert_eq!(
        json_of(&shown)["error"],
        json!({"kind": "unknown_tool", "message": "there is no tool `calculte`", "details": {"hint": "did you mean `calculate`?"}})
    );
    let unknown = run(&["toools", "--json"]);
    assert_eq!((status(&unknown), &json_of(&unknown)["error"]["kind"]), (Some(2), &json!("bad_request")));
    let usage = run(&["tools", "call", "calculate", "x", "--json"]);
    assert_eq!((status(&usage), &json_of(&usage)["error"]["kind"]), (Some(2), &json!("bad_request")));
}

/// S30 through the binary: an error with a kind each time, never a crash.
#[test]
fn hostile_arguments_are_refused() {
    let deep = format!("{{\"expression\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let many = format!("{{{}}}", (0..20_000).map(|key| format!("\"{key}\":0")).collect::<Vec<_>>().join(","));
    let large = "[".repeat(10 << 20);
    let inputs: [&[u8]; 9] = [
        deep.as_bytes(),
        many.as_bytes(),
        large.as_bytes(),
        br#"{"expression":"1","expression":"2"}"#,
        br#"{"expression":1e400}"#,
        br#"{"expression":"\ud800"}"#,
        b"{\"expression\":\"\xff\"}",
        br#"{"expression":18446744073709551616}"#,
        b"[]",
    ];
    for input in inputs {
        let mut child = helve(&["tools", "call", "calculate", "-", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("helve runs");
        // The command may stop reading before the end.
        let _ = child.stdin.take().expect("stdin").write_all(input);
        let output = child.wait_with_output().expect("an end");
        let kind = json_of(&output)["error"]["kind"].clone();
        assert!(kind == "bad_request" || kind == "invalid_parameters", "{kind}: {}", stderr(&output));
    }
}

/// A secret of the environment shows nowhere: not in results, errors, logs, `--json` or usage errors.
#[test]
fn a_canary_in_the_environment_never_shows() {
    let canary = "canary5be1c70123456789";
    let pair = format!("expression={canary}");
    let json = format!("{{\"{canary}\": 1}}");
    for arguments in [
        &["-vvv", "tools", "call", "calculate", &pair][..],
        &["-vvv", "tools", "call", "calculate", &pair, "--json"],
        &["-vvv", "tools", "call", "calculate", &json, "--json"],
        &["-vvv", "tools", "call", canary, "--json"],
        &["-vvv", "tools", "call", canary],
        &["tools", "show", canary, "--json"],
        &["tools", "show", canary],
        &["tools", "call", "calculate", canary],
        &["tools", canary],
        &["tools", "call", &format!("--{canary}"), "--json"],
        &["tools", "call", "get_time", &format!("timezone={canary}"), "-v"],
    ] {
        let output = helve(arguments).env("SOME_API_KEY", canary).output().expect("helve runs");
        let seen = stdout(&output) + &stderr(&output);
        assert!(!seen.contains("canary"), "{arguments:?} shows {seen}");
        assert!(seen.contains("[REDACTED]"), "{arguments:?} shows {seen}");
    }
}

#[test]
fn text_of_strangers_cannot_move_the_cursor() {
    let output = run(&["tools", "call", "calculate", "expression=\u{1b}[2Jx\u{202e}"]);
    assert!(!stderr(&output).contains('\u{1b}') && !stderr(&output).contains('\u{202e}'), "{:?}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn an_environment_that_is_not_text_is_no_panic() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let output = helve(&["tools", "call", "calculate", "expression=1+1"]).env("ODD_TOKEN", odd).env(odd, "x").output().expect("helve runs");
    assert_eq!((status(&output), stdout(&output)), (Some(0), "2\n".into()));
}

#[test]
fn the_log_can_be_set_and_a_wrong_setting_is_said() {
    let log = |value: &str| {
        stderr(&helve(&["tools", "call", "calculate", "expression=1+1"]).env("HELVE_LOG", value).output().expect("helve runs"))
    };
    assert!(log("info").contains("tool call"));
    assert_eq!(log(""), "");
    assert!(log("=x=y=").contains("HELVE_LOG is ignored"));
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let mut child = helve(&["tools", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("helve runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!((status(&output), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = run(&["completions", shell]);
        assert_eq!(status(&output), Some(0));
        assert!(stdout(&output).contains("helve"), "{shell}");
    }
}
