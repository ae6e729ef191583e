//! Measures what Helve costs and prints a Markdown table. `bench/run` builds everything it needs.
//!
//! Figures are CPU time, which holds on a busy machine, and each stands beside a bare baseline of the same run.

#![allow(clippy::print_stdout, reason = "the table is the result")]
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that goes wrong should stop")]

mod calls;
mod catalogue;
mod cpu;
mod dialect;
mod mcp;
mod postgres;
mod project;
mod queue;
mod report;
mod start;

use crate::report::Report;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        // For callgrind: the difference between two counts is the cost of a call.
        (Some("count-calls"), Some(count)) => calls::only(count.parse().expect("a number of calls")),
        (Some("dialect"), None) => {
            let mut report = Report::default();
            dialect::measure(&mut report);
            println!("{report}");
        }
        (Some("mcp"), None) => {
            let mut report = Report::default();
            mcp::measure(&mut report);
            println!("{report}");
        }
        // What is measured calls this.
        (Some("mcp-server"), Some(transport)) => mcp::server::run(&transport, arguments),
        (Some("queue"), None) => {
            let mut report = Report::default();
            queue::measure(&mut report);
            postgres::measure(&mut report);
            println!("{report}");
        }
        (Some(binary), None) => {
            let mut report = Report::default();
            calls::measure(&mut report);
            catalogue::measure(&mut report);
            project::measure(&mut report);
            start::measure(&mut report, binary);
            dialect::measure(&mut report);
            queue::measure(&mut report);
            postgres::measure(&mut report);
            mcp::measure(&mut report);
            println!("{report}");
        }
        _ => panic!(
            "usage: helve-bench PATH-OF-HELVE | helve-bench dialect | helve-bench mcp | helve-bench queue | helve-bench count-calls N"
        ),
    }
}
