//! The help of every command, as one snapshot, so that a change of wording shows.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::process::{Command, Stdio};

fn help(path: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_helve"))
        .args(path)
        .arg("--help")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("helve runs");
    assert!(output.status.success(), "{path:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The names below `Commands:`, without clap's own `help`.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Help without the options that every command has, which the first one shows.
fn without_global_options(help: &str) -> String {
    const GLOBAL: [&str; 8] =
        ["-C <DIR>", "--model <SPEC>", "--local", "--record <FILE>", "--store <URL>", "--json", "-v, --verbose", "-h, --help"];
    let mut shown = Vec::new();
    let mut lines = help.lines();
    while let Some(line) = lines.next() {
        let Some(option) = GLOBAL.iter().find(|option| line.trim_start().starts_with(**option)) else {
            shown.push(line);
            continue;
        };
        // A long description stands below its option, up to an empty line.
        if !line.trim_start()[option.len()..].contains("  ") {
            lines.by_ref().find(|line| line.is_empty());
        }
    }
    shown.join("\n")
}

fn collect(path: &mut Vec<String>, all: &mut String) {
    let text = help(path);
    let shown = if path.is_empty() { text.clone() } else { without_global_options(&text) };
    let title = format!("helve {}", path.join(" "));
    all.extend(["\n===== ", title.trim_end(), " =====\n", shown.trim_end(), "\n"]);
    for name in subcommands(&text) {
        path.push(name);
        collect(path, all);
        path.pop();
    }
}

#[test]
fn every_command_describes_itself() {
    let mut all = String::new();
    collect(&mut Vec::new(), &mut all);
    insta::assert_snapshot!(all);
}
