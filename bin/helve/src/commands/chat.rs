//! `helve chat`: a conversation at the terminal.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use helve::event::EndOfRun;
use helve::internal::{printable, suggest};
use helve::project::StateFolder;
use helve::{AgentError, CancellationToken};
use parking_lot::Mutex;
use serde_json::json;

use crate::chat::editor::{Editor, Input};
use crate::chat::session::{self, Asked, Session, Setup};
use crate::chat::show::Show;
use crate::chat::slash;
use crate::chat::spinner::Spinner;
use crate::cli::{self, Approve, Global};
use crate::failure::Failure;
use crate::terminal::{self, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// How many background calls run at once.
const AT_ONCE: usize = 4;
/// How long they may take to stop when the person leaves.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Talks until the person leaves.
pub fn run(chat: &cli::Chat, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    super::show_errors(workspace);
    let spinner = Spinner::new();
    let history = StateFolder::of_user().ok().map(|state| state.path("history"));
    let editor = Arc::new(Mutex::new(Editor::new(history.as_deref(), &slash::COMMANDS)));
    let approve = if terminal::can_ask() { Some(editor.clone()) } else { None };
    let setup = Setup { global, workspace, agent: chat.agent.as_deref(), approve: Approve::Ask, editor: approve, spinner: &spinner };
    workspace.block_on(async {
        let mut talk = Talk { session: Session::open(&setup).await?, setup, show: Show::new(spinner.clone()) };
        if chat.r#continue {
            talk.go_on().await?;
        }
        talk.greet();
        let working = talk.work();
        let ended = talk.talk(&editor).await;
        working.end().await;
        talk.session.close(workspace.helve()).await;
        ended
    })
}

/// A conversation at the terminal.
struct Talk<'a> {
    session: Session,
    setup: Setup<'a>,
    show: Show,
}

/// Background calls that run while the person talks.
struct Working {
    stop: CancellationToken,
    work: tokio::task::JoinHandle<()>,
}

impl Working {
    async fn end(self) {
        self.stop.cancel();
        // What does not stop in time goes back to the queue with this process's lease.
        let _ = tokio::time::timeout(LAST_MOMENT, self.work).await;
    }
}

impl Talk<'_> {
    /// Runs background calls, as long as the conversation goes on.
    fn work(&self) -> Working {
        let helve = self.setup.workspace.helve();
        let stop = CancellationToken::new();
        let record = self.session.agent.store().cloned().unwrap_or_else(helve::store::StoreHandle::in_memory);
        Working { work: tokio::spawn(helve.task_worker(&record, AT_ONCE).run(stop.clone())), stop }
    }

    fn greet(&self) {
        let info = self.session.agent.model().info();
        let agent = self.session.file.as_ref().map(|agent| format!("{} with ", agent.file.name)).unwrap_or_default();
        let line = format!("{agent}{}/{} · /help for help, Ctrl-D to leave", info.provider, info.name);
        terminal::note(&styled(FAINT, &printable::escape_line(&line)));
    }

    async fn talk(&mut self, editor: &Arc<Mutex<Editor>>) -> Result<ExitCode, Failure> {
        loop {
            let reader = editor.clone();
            let prompt = styled(GOOD, "› ");
            let read = tokio::task::spawn_blocking(move || reader.lock().read(&prompt));
            let line = match read.await.map_err(|error| Failure::new("failed", error))? {
                Input::Line(line) if line.trim().is_empty() => continue,
                Input::Line(line) => line,
                Input::Interrupted => {
                    terminal::note(&styled(FAINT, "Ctrl-C again, Ctrl-D or /quit to leave"));
                    continue;
                }
                Input::End => return Ok(ExitCode::SUCCESS),
            };
            match slash::read(&line) {
                Some(("/quit" | "/exit", _)) => return Ok(ExitCode::SUCCESS),
                Some((command, rest)) => {
                    if let Err(failure) = self.command(command, rest).await {
                        let _ = failure.show(false);
                    }
                }
                None => {
                    if let Some(code) = self.say(&line).await {
                        return Ok(code);
                    }
                }
            }
        }
    }

    /// Answers one line; says how to leave where nobody is there to approve what it needs.
    async fn say(&mut self, line: &str) -> Option<ExitCode> {
        let json = self.setup.global.json;
        let ended = self.session.answer(Asked::Now(line), &mut self.show, json).await;
        match ended {
            Ok(_) => None,
            Err(AgentError::Stopped { reason: EndOfRun::Cancelled, .. }) => {
                terminal::note(&styled(FAINT, "cancelled"));
                None
            }
            waiting @ Err(AgentError::Waiting(_)) => self.session.ended(waiting).ok(),
            other => {
                if let Err(failure) = self.session.ended(other) {
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
            "/cost" => terminal::note(&session::cost(&self.session.agent.conversation().usage)),
            "/save" => self.save(rest)?,
            "/new" => {
                self.session.agent.reset();
                terminal::note(&styled(FAINT, "a new conversation"));
            }
            "/model" | "/agent" if rest.is_empty() => self.greet(),
            "/model" => self.reopen(Some(rest), None).await?,
            "/agent" => self.reopen(None, Some(rest)).await?,
            other => {
                let near = suggest::did_you_mean(other, slash::COMMANDS.iter().map(|(name, _)| *name));
                return Err(Failure::usage(format_args!("there is no {other}{near}")).hint("/help lists all"));
            }
        }
        Ok(())
    }

    fn tools(&mut self) -> Result<(), Failure> {
        let toolkit = self.session.agent.toolkit().map_err(|error| Failure::new(error.kind(), error))?;
        for entry in toolkit.list() {
            let what = entry.spec().description().lines().next().unwrap_or_default();
            let line = format!(
                "  {} {}",
                styled(STRONG, &printable::escape_line(entry.name())),
                crate::table::cut(&printable::escape_line(what), 100)
            );
            terminal::note(&line);
        }
        Ok(())
    }

    /// Goes on with another model or agent; what was said stays said.
    async fn reopen(&mut self, model: Option<&str>, agent: Option<&str>) -> Result<(), Failure> {
        let global = Global {
            model: model.map(ToOwned::to_owned).or_else(|| self.setup.global.model.clone()),
            record: self.setup.global.record.clone(),
            store: self.setup.global.store.clone(),
            folder: self.setup.global.folder.clone(),
            ..*self.setup.global
        };
        let name = agent.map(ToOwned::to_owned).or_else(|| self.session.file.as_ref().map(|agent| agent.file.name.clone()));
        let setup = Setup { global: &global, agent: name.as_deref(), editor: self.setup.editor.clone(), ..self.setup };
        let opened = Session::open(&setup).await?;
        let conversation = self.session.agent.reset();
        self.session = Session { agent: opened.agent.with_conversation(conversation), ..opened };
        self.greet();
        Ok(())
    }

    fn save(&self, name: &str) -> Result<(), Failure> {
        let name = if name.is_empty() { "conversation.json" } else { name };
        let path = PathBuf::from(name);
        let mut document = json!(self.session.agent.conversation());
        self.setup.workspace.helve().redactor().clean_value(&mut document);
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        let write = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        write.map_err(|error| {
            Failure::new("failed", format_args!("{name} cannot be written: {error}")).hint("give another name: /save FILE")
        })?;
        terminal::note(&format!("saved as {}", printable::escape_line(name)));
        Ok(())
    }

    /// Goes on with the last conversation of this record.
    async fn go_on(&mut self) -> Result<(), Failure> {
        let record = self.setup.workspace.helve().open_store(self.setup.global.store.as_deref()).await;
        let record = record.map_err(|error| Failure::new("storage", &error).hint(&error.hint))?;
        let Some(last) = record.conversations(1).await?.pop() else {
            return Err(Failure::new("not_found", "there is no conversation to go on with").hint("begin one: `helve chat`"));
        };
        self.session.agent.open_conversation(last.id).await.map_err(|error| Failure::new(error.kind(), error))?;
        terminal::note(&styled(FAINT, &format!("going on after {} messages", last.said)));
        Ok(())
    }
}
