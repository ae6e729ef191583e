//! `helve completions`: shell completion scripts.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::terminal;

/// Prints the completion script of a shell.
pub fn run(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "helve", &mut script);
    terminal::print(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}
