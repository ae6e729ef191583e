//! The `helve` command: reads the command line, runs one command, says how it ended.

mod chat;
mod cli;
mod commands;
#[cfg(target_os = "linux")]
mod environment;
mod failure;
mod logging;
mod table;
mod terminal;
mod workspace;

use std::process::ExitCode;

use clap::Parser;
use helve::secret::Redactor;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::workspace::Workspace;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    let hidden = environment::hide();
    let redactor = Redactor::default();
    redactor.add_environment();
    terminal::guard(&redactor);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    logging::start(cli.global.verbose, &redactor);
    #[cfg(target_os = "linux")]
    if let Err(error) = hidden {
        tracing::debug!(%error, "programs may see the environment of this process");
    }
    match run(&cli, &redactor) {
        Ok(code) => code,
        Err(failure) => failure.show(cli.global.json),
    }
}

fn run(cli: &Cli, redactor: &Redactor) -> Result<ExitCode, Failure> {
    let open = || Workspace::open(&cli.global.folder, redactor);
    let open_alone = || Workspace::open_alone(&cli.global.folder, redactor);
    let command = cli.command.as_ref().unwrap_or(&Command::Chat(cli::Chat { agent: None, r#continue: false }));
    match command {
        Command::Chat(chat) => commands::chat::run(chat, &cli.global, &open()?),
        Command::Run(run) => commands::run::run(run, &cli.global, &open()?),
        Command::Demo => commands::demo::run(&cli.global, redactor),
        Command::Models(models) => commands::models::run(models, &cli.global, &open_alone()?),
        Command::Tools(tools) => commands::tools::run(tools, &cli.global, &open()?),
        Command::Runs(runs) => commands::runs::run(runs, &cli.global, &open()?),
        Command::Tasks(tasks) => commands::tasks::run(tasks, &cli.global, &open_alone()?),
        Command::Approvals(approvals) if approvals.needs_tools() => commands::approvals::run(approvals, &cli.global, &open()?),
        Command::Approvals(approvals) => commands::approvals::run(approvals, &cli.global, &open_alone()?),
        Command::Worker(worker) => commands::worker::run(worker, &cli.global, &open()?),
        Command::Backup { file } => commands::backup::run(file, &cli.global, &open_alone()?),
        Command::Mcp(mcp) if mcp.needs_no_server() => commands::mcp::run(mcp, &cli.global, &open_alone()?),
        Command::Mcp(mcp) => commands::mcp::run(mcp, &cli.global, &open()?),
        Command::Sets => Ok(commands::sets::run(&cli.global, &open()?)),
        Command::Agents => Ok(commands::agents::run(&cli.global, &open()?)),
        Command::Init { directory: None } => commands::init::run(&cli.global.folder, &cli.global),
        Command::Init { directory: Some(directory) } => commands::init::run(&cli.global.folder.join(directory), &cli.global),
        Command::Trust(trust) => commands::trust::run(trust, &cli.global, &open()?),
        Command::Parse(parse) => commands::parse::run(parse, &cli.global),
        Command::Prompt(prompt) => commands::prompt::run(prompt, &cli.global, &open()?),
        Command::Schema { kind } => commands::schema::run(kind.as_deref(), &cli.global),
        Command::Completions { shell } => commands::completions::run(*shell),
    }
}
