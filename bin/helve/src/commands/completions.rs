//! `helve completions`: a script for the shell.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::terminal;

/// Prints the completion script of a shell.
#[expect(clippy::unnecessary_wraps, reason = "all commands look alike")]
pub fn run(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "helve", &mut script);
    terminal::print(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}
