//! The programs that a new user wrote first. Each is at most a fifth longer than they wished it to be.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

/// A program, and how many lines of code it may have.
const PROGRAMS: [(&str, usize); 9] = [
    ("streaming", 27),
    ("stateful_tool", 70),
    ("closure_tool", 34),
    ("approvals", 56),
    ("durable_run", 28),
    ("layer", 32),
    ("mcp", 36),
    ("own_model", 20),
    // A stateful tool, an approval and a durable run.
    ("newcomer", 39),
];

#[test]
fn first_programs_are_short() {
    for (name, most) in PROGRAMS {
        let path = format!("{}/../../examples/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("an example");
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        let lines = text.lines().filter(is_code).count();
        assert!(lines <= most, "{name} has {lines} lines of code, and may have {most}");
    }
}
