//! Generated folders that are not trusted, opened with every command but those that consent. Nothing may happen but reading.
//!
//! **Folders.** Each kind of file has samples with every field of the schema that `helve schema` prints; a field without a sample fails the
//! test. Each spelling of a variable stands in every position of the samples: every value, an unknown field of every object, the name of a
//! field. Each spelling of an address stands in every field that is fetched from, and in every text that a file can hold freely. A table of
//! pairs says that none is missing, and each pair is in a file that loads, or that would load without it. OpenAPI documents, programs, stores
//! with queued calls and links lie beside them.
//!
//! **Commands.** Every command that `helve --help` lists is run, or a consent by name. Three folders with all kinds of files are opened with
//! every command line; all others with those that together use all parts of a folder.
//!
//! **Observation.** In every run: the log of each variable that is read, canaries in the environment, a trap that all addresses lead to, the
//! folder and its neighbour compared before and after, and strace for every file that is written, every program that is started and every
//! address that is reached or listened on. Without strace, or without root, what only it can see is skipped by name.

mod commands;
mod fields;
mod generated;
mod samples;
mod stage;
mod watch;

use std::collections::BTreeSet;
use std::path::Path;

use self::commands::left_out;
use self::fields::{VARIABLES, fields_of, missing};
use self::generated::Plan;
use self::samples::Bait;
use self::stage::Stage;
use crate::folder::{Project, stderr};

/// The folders are opened by so many tests, which run beside each other.
const SHARES: usize = 8;

/// Opens a share of all folders.
fn open(share: usize) {
    let stage = Stage::new(&format!("opening_a_folder_does_nothing_but_read_{}", share + 1));
    let plan = stage.plan();
    for generated in plan.folders.iter().skip(share).step_by(SHARES) {
        stage.open(generated);
    }
}

#[test]
fn opening_a_folder_does_nothing_but_read_1() {
    open(0);
}

#[test]
fn opening_a_folder_does_nothing_but_read_2() {
    open(1);
}

#[test]
fn opening_a_folder_does_nothing_but_read_3() {
    open(2);
}

#[test]
fn opening_a_folder_does_nothing_but_read_4() {
    open(3);
}

#[test]
fn opening_a_folder_does_nothing_but_read_5() {
    open(4);
}

#[test]
fn opening_a_folder_does_nothing_but_read_6() {
    open(5);
}

#[test]
fn opening_a_folder_does_nothing_but_read_7() {
    open(6);
}

#[test]
fn opening_a_folder_does_nothing_but_read_8() {
    open(7);
}

#[test]
fn every_command_is_run_or_a_consent() {
    assert_eq!(left_out(), Vec::<String>::new(), "add them to LINES, or to CONSENTS with a reason");
}

#[test]
fn every_field_has_a_sample_and_every_pair_a_file() {
    let plan = Plan::new(&Bait { port: 1, mark: Path::new("mark") });
    let project = Project::new(&[]);
    let kinds = project.json(&["schema", "--json"]);
    let kinds: BTreeSet<&str> = kinds.as_object().expect("schemas").keys().map(String::as_str).collect();
    for kind in &kinds {
        let schema = project.json(&["schema", kind]);
        let samples: Vec<_> = plan.samples.iter().filter(|sample| sample.kind == *kind).collect();
        assert_eq!(missing(&fields_of(&schema), &samples), Vec::<String>::new(), "no sample of the kind `{kind}` has these fields");
    }
    let known: BTreeSet<&str> = plan.samples.iter().map(|sample| sample.kind).filter(|kind| *kind != "document").collect();
    assert_eq!(known, kinds);
    let (gaps, pairs) = plan.coverage.gaps(&plan.samples);
    assert_eq!(gaps, Vec::<String>::new());
    assert!(pairs > 4_000, "only {pairs} pairs");
}

/// What is asserted above is only worth something if the observer sees what a folder does that is trusted.
#[test]
fn the_observer_sees_what_a_trusted_folder_does() {
    let stage = Stage::new("the_observer_sees_what_a_trusted_folder_does");
    let project = stage.sample_folder();
    let trusted = project.run(&["trust", "--yes"]);
    assert!(trusted.status.success(), "{}", stderr(&trusted));
    let called = stage.observe(&project, &["tools", "call", "t0", "--wait"]);
    assert!(called.variables.iter().any(|name| name == "HUB_TOKEN"), "{called:#?}");
    assert!(stage.mark().exists(), "{called:#?}");
    let probed = stage.observe(&project, &["models", "probe", "house"]);
    assert!(probed.variables.iter().any(|name| VARIABLES.contains(&name.as_str())), "{probed:#?}");
    assert!(!stage.trap.seen().is_empty(), "{probed:#?}");
    if called.is_traced {
        assert!(called.programs.iter().any(|program| program.ends_with("/sh")), "{called:#?}");
        assert!(called.writes.contains(&stage.mark()), "{called:#?}");
        assert!(probed.connections.contains(&format!("127.0.0.1:{}", stage.trap.port())), "{probed:#?}");
    }
}
