//! The `helve` command: parses the command line, runs one command and returns its exit status.

mod cli;
mod commands;
#[cfg(target_os = "linux")]
mod environment;
mod failure;
mod logging;
mod session;
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
    terminal::set_redactor(&redactor);
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
    let global = &cli.global;
    let open = || Workspace::open(&global.folder, redactor);
    let open_offline = || Workspace::open_offline(&global.folder, redactor);
    let default = Command::Chat(cli::Chat::default());
    match cli.command.as_ref().unwrap_or(&default) {
        Command::Chat(chat) => commands::chat::run(chat, global, &open()?),
        Command::Run(run) => commands::run::run(run, global, &open()?),
        Command::Demo => commands::demo::run(global, redactor),
        Command::Models(models) => commands::models::run(models, global, &open_offline()?),
        Command::Tools(tools) => commands::tools::run(tools, global, &open()?),
        Command::Runs(runs) => commands::runs::run(runs, global, &open()?),
        Command::Tasks(tasks) => commands::tasks::run(tasks, global, &open_offline()?),
        Command::Approvals(approvals) if approvals.needs_tools() => commands::approvals::run(approvals, global, &open()?),
        Command::Approvals(approvals) => commands::approvals::run(approvals, global, &open_offline()?),
        Command::Worker(worker) => commands::worker::run(worker, global, &open()?),
        Command::Backup { file } => commands::backup::run(file, global, &open_offline()?),
        Command::Mcp(mcp) if mcp.needs_no_server() => commands::mcp::run(mcp, global, &open_offline()?),
        Command::Mcp(mcp) => commands::mcp::run(mcp, global, &open()?),
        Command::Sets => Ok(commands::sets::run(global, &open()?)),
        Command::Agents => Ok(commands::agents::run(global, &open()?)),
        Command::Init { directory: None } => commands::init::run(&global.folder, global),
        Command::Init { directory: Some(directory) } => commands::init::run(&global.folder.join(directory), global),
        Command::Trust(trust) => commands::trust::run(trust, global, &open()?),
        Command::Parse(parse) => commands::parse::run(parse, global),
        Command::Prompt(prompt) => commands::prompt::run(prompt, global, &open()?),
        Command::Schema { kind } => commands::schema::run(kind.as_deref(), global),
        Command::Completions { shell } => Ok(commands::completions::run(*shell)),
    }
}
