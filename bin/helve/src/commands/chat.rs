//! `helve chat`: chats with an agent at the terminal.

mod slash;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use helve::event::EndOfRun;
use helve::internal::{printable, suggest};
use helve::model::Usage;
use helve::project::StateFolder;
use helve::store::StoreHandle;
use helve::{AgentError, CancellationToken};
use parking_lot::Mutex;
use serde_json::json;

use crate::cli::{self, Approve, Global};
use crate::failure::Failure;
use crate::session::run_view::RunView;
use crate::session::{RunInput, Session, SessionOptions};
use crate::terminal::editor::{Editor, Input};
use crate::terminal::spinner::Spinner;
use crate::terminal::{self, GOOD, STRONG, cut, styled};
use crate::workspace::Workspace;

/// Maximum number of concurrent background calls.
const CONCURRENCY: usize = 4;
/// Time that background calls have to stop when the chat ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Chats until the user quits.
pub fn run(chat: &cli::Chat, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    super::show_errors(workspace);
    let spinner = Spinner::new();
    let history = StateFolder::of_user().ok().map(|state| state.path("history"));
    let editor = Arc::new(Mutex::new(Editor::new(history.as_deref(), &slash::COMMANDS)));
    let approvals = terminal::can_ask().then(|| editor.clone());
    let agent = chat.agent.as_deref();
    let options = SessionOptions { global, workspace, agent, approve: Approve::Ask, editor: approvals, spinner: &spinner };
    workspace.block_on(async {
        let mut chat_loop = ChatLoop { session: Session::open(&options).await?, options, view: RunView::new(spinner.clone()) };
        if chat.r#continue {
            chat_loop.continue_last().await?;
        }
        chat_loop.show_agent();
        let worker = chat_loop.start_worker();
        let result = chat_loop.run(&editor).await;
        worker.stop().await;
        chat_loop.session.close(workspace.helve()).await;
        result
    })
}

/// The loop of a chat, which reads prompts and commands.
struct ChatLoop<'a> {
    session: Session,
    options: SessionOptions<'a>,
    view: RunView,
}

/// A worker that runs background calls during the chat.
struct BackgroundWorker {
    stop: CancellationToken,
    work: tokio::task::JoinHandle<()>,
}

impl BackgroundWorker {
    async fn stop(self) {
        self.stop.cancel();
        // A call that does not stop in time returns to the queue when the lease of this process ends.
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.work).await;
    }
}

impl ChatLoop<'_> {
    fn start_worker(&self) -> BackgroundWorker {
        let helve = self.options.workspace.helve();
        let stop = CancellationToken::new();
        let store = self.session.agent.store().cloned().unwrap_or_else(StoreHandle::in_memory);
        BackgroundWorker { work: tokio::spawn(helve.task_worker(&store, CONCURRENCY).run(stop.clone())), stop }
    }

    fn show_agent(&self) {
        let info = self.session.agent.model().info();
        let agent = self.session.file.as_ref().map(|agent| format!("{} with ", agent.file.name)).unwrap_or_default();
        let line = format!("{agent}{}/{} · /help lists commands, Ctrl-D quits", info.provider, info.name);
        terminal::note_faintly(&printable::escape_line(&line));
    }

    async fn run(&mut self, editor: &Arc<Mutex<Editor>>) -> Result<ExitCode, Failure> {
        loop {
            let reader = editor.clone();
            let prompt = styled(GOOD, "› ");
            let read = tokio::task::spawn_blocking(move || reader.lock().read(&prompt));
            let line = match read.await.map_err(|error| Failure::new("failed", error))? {
                Input::Line(line) if line.trim().is_empty() => continue,
                Input::Line(line) => line,
                Input::Interrupted => {
                    terminal::note_faintly("Press Ctrl-C again or Ctrl-D to quit.");
                    continue;
                }
                Input::End => return Ok(ExitCode::SUCCESS),
            };
            match slash::parse(&line) {
                Some(("/quit" | "/exit", _)) => return Ok(ExitCode::SUCCESS),
                Some((command, rest)) => {
                    if let Err(failure) = self.command(command, rest).await {
                        let _ = failure.show(false);
                    }
                }
                None => {
                    if let Some(code) = self.prompt(&line).await {
                        return Ok(code);
                    }
                }
            }
        }
    }

    /// Runs one prompt. Returns an exit status if the run waits for approval and Helve cannot ask here.
    async fn prompt(&mut self, line: &str) -> Option<ExitCode> {
        let json = self.options.global.json;
        match self.session.run(RunInput::Prompt(line), &mut self.view, json).await {
            Ok(_) => None,
            Err(AgentError::Stopped { reason: EndOfRun::Cancelled, .. }) => {
                terminal::note_faintly("cancelled");
                None
            }
            waiting @ Err(AgentError::Waiting(_)) => self.session.report(waiting).ok(),
            other => {
                if let Err(failure) = self.session.report(other) {
                    let _ = failure.show(json);
                }
                None
            }
        }
    }

    async fn command(&mut self, command: &str, rest: &str) -> Result<(), Failure> {
        match command {
            "/help" => slash::COMMANDS
                .iter()
                .for_each(|(name, what)| terminal::note(&format!("  {} {what}", styled(STRONG, &format!("{name:8}"))))),
            "/tools" => self.tools()?,
            "/cost" => terminal::note(&cost(&self.session.agent.conversation().usage)),
            "/save" => self.save(rest)?,
            "/new" => {
                self.session.agent.reset();
                terminal::note_faintly("new conversation");
            }
            "/model" | "/agent" if rest.is_empty() => self.show_agent(),
            "/model" => self.reopen(Some(rest), None).await?,
            "/agent" => self.reopen(None, Some(rest)).await?,
            other => {
                let near = suggest::did_you_mean(other, slash::COMMANDS.iter().map(|(name, _)| *name));
                return Err(Failure::usage(format_args!("there is no command {other}{near}")).hint("/help lists all commands"));
            }
        }
        Ok(())
    }

    fn tools(&mut self) -> Result<(), Failure> {
        let toolkit = self.session.agent.toolkit()?;
        for entry in toolkit.list() {
            let what = entry.spec().description().lines().next().unwrap_or_default();
            let name = styled(STRONG, &printable::escape_line(entry.name()));
            terminal::note(&format!("  {name} {}", cut(&printable::escape_line(what), 100)));
        }
        Ok(())
    }

    /// Continues the conversation with another model or agent.
    async fn reopen(&mut self, model: Option<&str>, agent: Option<&str>) -> Result<(), Failure> {
        let global = Global {
            model: model.map(ToOwned::to_owned).or_else(|| self.options.global.model.clone()),
            record: self.options.global.record.clone(),
            store: self.options.global.store.clone(),
            folder: self.options.global.folder.clone(),
            ..*self.options.global
        };
        let name = agent.map(ToOwned::to_owned).or_else(|| self.session.file.as_ref().map(|agent| agent.file.name.clone()));
        let options = SessionOptions { global: &global, agent: name.as_deref(), editor: self.options.editor.clone(), ..self.options };
        let opened = Session::open(&options).await?;
        let conversation = self.session.agent.reset();
        self.session = Session { agent: opened.agent.with_conversation(conversation), ..opened };
        self.show_agent();
        Ok(())
    }

    fn save(&self, name: &str) -> Result<(), Failure> {
        let name = if name.is_empty() { "conversation.json" } else { name };
        let path = PathBuf::from(name);
        let mut document = json!(self.session.agent.conversation());
        self.options.workspace.helve().redactor().clean_value(&mut document);
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        let write = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        write.map_err(|error| {
            Failure::new("failed", format_args!("cannot write {name}: {error}")).hint("choose another name: /save FILE")
        })?;
        terminal::note(&format!("saved to {}", printable::escape_line(name)));
        Ok(())
    }

    /// Continues the last conversation in the store.
    async fn continue_last(&mut self) -> Result<(), Failure> {
        let store = self.options.workspace.helve().open_store(self.options.global.store.as_deref()).await?;
        let Some(last) = store.conversations(1).await?.pop() else {
            return Err(Failure::new("not_found", "there is no conversation to continue").hint("start one with `helve chat`"));
        };
        self.session.agent.open_conversation(last.id).await?;
        terminal::note_faintly(&format!("continuing after {}", terminal::counted(last.message_count, "message")));
        Ok(())
    }
}

/// Formats the tokens and cost of a conversation.
fn cost(usage: &Usage) -> String {
    let cost = usage.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    format!("{} input tokens, {} output tokens{cost}", usage.input_tokens, usage.output_tokens)
}
