//! `helve run`: one request, answered.

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::chat::editor::Editor;
use helve::id::RunId;
use helve::store::StoreError;

use crate::chat::session::{Asked, Session, Setup};
use crate::chat::show::Show;
use crate::chat::spinner::Spinner;
use crate::cli::{self, Approve, Global};
use crate::failure::Failure;
use crate::terminal;
use crate::workspace::Workspace;

/// The longest request that is read from stdin.
const MAX_INPUT: u64 = 16 << 20;

/// Answers one request.
pub fn run(run: &cli::Run, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let input = if run.resume.is_some() { String::new() } else { input(&run.prompt)? };
    super::show_errors(workspace);
    let of_run = run.resume.map(|id| agent_of(id, global, workspace)).transpose()?.flatten();
    let spinner = Spinner::new();
    let editor = (run.approve == Approve::Ask && terminal::can_ask() && !global.json).then(|| Arc::new(Mutex::new(Editor::new(None, &[]))));
    let setup =
        Setup { global, workspace, agent: run.agent.as_deref().or(of_run.as_deref()), approve: run.approve, editor, spinner: &spinner };
    workspace.block_on(async {
        let mut session = Session::open(&setup).await?;
        let mut show = Show::new(spinner.clone());
        let asked = run.resume.map_or(Asked::Now(&input), Asked::Before);
        let ended = session.answer(asked, &mut show, global.json).await;
        session.close(workspace.helve()).await;
        session.ended(ended)
    })
}

/// The agent of a recorded run, where a file describes it.
fn agent_of(id: RunId, global: &Global, workspace: &Workspace) -> Result<Option<String>, Failure> {
    let store = workspace.store(global)?;
    let run = workspace.block_on(store.run(id))?.ok_or_else(|| StoreError::NotFound(format!("run {id}")))?;
    Ok(workspace.helve().described(run.agent.as_deref()))
}

/// What is asked: the words of the command line, or stdin.
fn input(prompt: &[String]) -> Result<String, Failure> {
    let text = match prompt {
        [dash] if dash == "-" => {
            let mut text = String::new();
            io::stdin()
                .take(MAX_INPUT)
                .read_to_string(&mut text)
                .map_err(|error| Failure::new("bad_request", format_args!("stdin cannot be read: {error}")))?;
            text
        }
        words => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("there is nothing to answer").hint("helve run \"What time is it in Tokyo?\", or `-` to read stdin"));
    }
    Ok(text)
}
