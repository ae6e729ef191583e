//! The `helve` command: reads the command line, runs one command, says how it ended.

mod cli;
mod commands;
mod failure;
mod logging;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use helve::Helve;

use crate::cli::{Cli, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let helve = Helve::new();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error, helve.redactor()),
    };
    logging::start(cli.global.verbose, helve.redactor());
    match run(&cli, &helve) {
        Ok(code) => code,
        Err(failure) => failure.show(cli.global.json, helve.redactor()),
    }
}

fn run(cli: &Cli, helve: &Helve) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Tools(tools) => commands::tools::run(tools, &cli.global, helve),
        Command::Completions { shell } => commands::completions::run(*shell),
    }
}
