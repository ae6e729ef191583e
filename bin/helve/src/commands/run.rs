//! `helve run`: runs an agent on one prompt, or resumes a run.

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::Arc;

use helve::id::RunId;
use helve::store::StoreError;
use parking_lot::Mutex;

use crate::cli::{self, Approve, Global};
use crate::failure::Failure;
use crate::session::run_view::RunView;
use crate::session::{RunInput, Session, SessionOptions};
use crate::terminal;
use crate::terminal::editor::Editor;
use crate::terminal::spinner::Spinner;
use crate::workspace::Workspace;

/// Maximum size of a prompt on stdin, in bytes.
const MAX_INPUT: u64 = 16 << 20;

/// Runs the agent on a prompt, or resumes a run.
pub fn run(run: &cli::Run, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let input = if run.resume.is_some() { String::new() } else { input(&run.prompt)? };
    super::show_errors(workspace);
    let of_run = run.resume.map(|id| agent_of(id, global, workspace)).transpose()?.flatten();
    let spinner = Spinner::new();
    let editor = (run.approve == Approve::Ask && terminal::can_ask() && !global.json).then(|| Arc::new(Mutex::new(Editor::new(None, &[]))));
    let agent = run.agent.as_deref().or(of_run.as_deref());
    let options = SessionOptions { global, workspace, agent, approve: run.approve, editor, spinner: &spinner };
    workspace.block_on(async {
        let mut session = Session::open(&options).await?;
        let mut view = RunView::new(spinner.clone());
        let input = run.resume.map_or(RunInput::Prompt(&input), RunInput::Resume);
        let result = session.run(input, &mut view, global.json).await;
        session.close(workspace.helve()).await;
        session.report(result)
    })
}

/// Returns the agent of a stored run, if a file describes the agent.
fn agent_of(id: RunId, global: &Global, workspace: &Workspace) -> Result<Option<String>, Failure> {
    let store = workspace.store(global)?;
    let run = workspace.block_on(store.run(id))?.ok_or_else(|| StoreError::NotFound(format!("run {id}")))?;
    Ok(workspace.helve().known_agent(run.agent.as_deref()).map(str::to_owned))
}

/// Returns the prompt, from the command line or stdin.
fn input(prompt: &[String]) -> Result<String, Failure> {
    let text = match prompt {
        [dash] if dash == "-" => {
            let mut text = String::new();
            io::stdin()
                .take(MAX_INPUT)
                .read_to_string(&mut text)
                .map_err(|error| Failure::new("bad_request", format_args!("cannot read stdin: {error}")))?;
            text
        }
        words => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty")
            .hint("write a prompt, such as `helve run \"What time is it in Tokyo?\"`, or `-` to read it from stdin"));
    }
    Ok(text)
}
