//! Text that was written to keep the parser busy, or to fill the memory.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::folder::{Project, stderr};

const MIB: usize = 1 << 20;
/// Address space for `helve parse`, in KiB: what the program takes for itself, and some ten times a text of 10 MiB.
const ROOM: usize = 320 * 1024;

/// `helve parse` with so many KiB of address space. A shell sets the limit, which only Linux keeps.
fn limited(project: &Project, room: usize, arguments: &[&str]) -> Command {
    let helve = project.command(&[&["parse"], arguments].concat());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -v {room} && exec \"$@\"")).arg("sh").arg(helve.get_program()).args(helve.get_args());
    shell.envs(helve.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    shell
}

fn finish(command: &mut Command, input: Vec<u8>) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("helve starts");
    let mut stdin = child.stdin.take().expect("stdin");
    // A process that ends early reads no more; its output says why.
    let writer = thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("helve ends");
    let _ = writer.join();
    output
}

/// The items of a text, after a look at whether they cover it.
fn items(output: &Output, text: &[u8]) -> Vec<Value> {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
    let mut document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let Value::Array(items) = document["items"].take() else { panic!("no items") };
    let mut at = 0;
    for item in &items {
        let [start, end] = [0, 1].map(|place| item["span"][place].as_u64().and_then(|place| usize::try_from(place).ok()).expect("a place"));
        assert_eq!(start, at, "spans meet");
        if item["type"] == "text" {
            assert!(item["text"].as_str().expect("text").as_bytes() == &text[start..end], "text is its span");
        }
        at = end;
    }
    assert_eq!(at, text.len(), "spans cover the text");
    items
}

/// Takes minutes or hours where each closing tag makes the parser look through the rest; the test runner ends that.
#[test]
fn a_value_without_an_end_is_looked_through_once() {
    let project = Project::new(&[]);
    for unit in ["</a>", "</a><b>"] {
        let open = "<tool_call>\n  <name>f</name>\n  <params>\n    <a><![CDATA[x".to_owned();
        let text = (open + &unit.repeat(4 * MIB / unit.len())).into_bytes();
        for dialect in ["auto", "hermes", "helve_xml"] {
            let output = finish(&mut project.command(&["parse", "--dialect", dialect]), text.clone());
            let items = items(&output, &text);
            assert_eq!(items.len(), 1, "{dialect}");
            assert_eq!(items[0]["kind"], "incomplete", "{dialect}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn memory_stays_in_proportion_to_the_text() {
    let project = Project::new(&[]);
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let arguments = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [";
    let cases = [
        ("mistral_v3", "", "[TOOL_CALLS]", "", "too_many"),
        ("mistral_v11", "", "[TOOL_CALLS]f{}", "", "too_many"),
        ("hermes", "", call, "", "too_many"),
        ("auto", "", "<eos>x", "", ""),
        ("auto", arguments, "{\"\":0},", "0]}}</tool_call>", "too_large"),
        ("auto", "<tool_call><name>f</name><params>", "<a/>", "</params></tool_call>", "too_large"),
        ("auto", "<tool_call><name>f</name><params><a>", "<b/>", "</a></params></tool_call>", "too_large"),
    ];
    for (dialect, before, unit, after, kind) in cases {
        let text = [before, &unit.repeat(10 * MIB / unit.len()), after].concat().into_bytes();
        for chunk in ["0", "1000"] {
            let output = finish(&mut limited(&project, ROOM, &["--dialect", dialect, "--chunk", chunk]), text.clone());
            let items = items(&output, &text);
            let faults = items.iter().filter(|item| item["type"] == "malformed" && item["kind"] == kind).count();
            assert_eq!(faults, usize::from(!kind.is_empty()), "{dialect}: {unit}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn input_without_an_end_is_refused() {
    let project = Project::new(&[]);
    let fifo = project.folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let large = project.folder.path().join("large.json");
    File::create(&large).and_then(|file| file.set_len(17 << 20)).expect("a file");
    let refused = |output: &Output, message: &str| {
        assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
        assert!(stderr(output).contains(message), "{}", stderr(output));
    };
    for (file, message) in [("/dev/zero", "not a regular file"), (fifo.to_str().expect("a path"), "not a regular file")] {
        refused(&finish(&mut limited(&project, 2 * ROOM, &["--tools", file]), Vec::new()), message);
    }
    refused(&finish(&mut limited(&project, 2 * ROOM, &["--tools", large.to_str().expect("a path")]), Vec::new()), "larger than 16 MiB");
    for arguments in [&[][..], &["--batch"]] {
        let endless = File::open("/dev/zero").expect("a device");
        refused(&limited(&project, 2 * ROOM, arguments).stdin(endless).output().expect("helve ends"), "longer than 64 MiB");
    }
}
