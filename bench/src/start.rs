//! What it costs to start the command and list all tools.

use std::process::{Command, Stdio};

use crate::cpu;
use crate::report::Report;

const RUNS: u32 = 40;

fn command(program: &str, arguments: &[&str]) -> f64 {
    let before = cpu::of_children();
    for _ in 0..RUNS {
        let status = Command::new(program).args(arguments).stdout(Stdio::null()).status().expect("it runs");
        assert!(status.success());
    }
    cpu::of_children().saturating_sub(before).as_secs_f64() * 1e3 / f64::from(RUNS)
}

/// Measures whole commands.
pub fn measure(report: &mut Report, helve: &str) {
    let nothing = command("true", &[]);
    report.row("`helve tools --json`, start to end", command(helve, &["tools", "--json"]), "ms", ("`true`", nothing), Some(20.0));
    let call = command(helve, &["tools", "call", "calculate", "expression=1+1"]);
    report.row("`helve tools call calculate`, start to end", call, "ms", ("`true`", nothing), None);
}
