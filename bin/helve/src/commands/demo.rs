//! `helve demo`: runs an agent without an API key. The model's responses are replayed from a recording; the tools run live.

use std::process::ExitCode;
use std::time::Duration;

use helve::Helve;
use helve::model::Replay;
use helve::secret::Redactor;

use crate::cli::Global;
use crate::failure::Failure;
use crate::session::run_view::RunView;
use crate::session::{RunInput, Session};
use crate::terminal::spinner::Spinner;
use crate::terminal::{self, GOOD, styled};
use crate::workspace::new_runtime;

const RECORDING: &str = include_str!("demo/recording.jsonl");
const REQUEST: &str = "I'm staying 3 nights in Kyoto at €129.50 a night plus 7% tax, and the train takes 2.5 hours for 480 km. \
What does the hotel cost, how many miles is that, and how fast is the train?";
/// Delay between deltas, so that text visibly streams, and the demo still ends within a second.
const PACE: Duration = Duration::from_millis(9);

/// Runs the demo.
pub fn run(global: &Global, redactor: &Redactor) -> Result<ExitCode, Failure> {
    let watched = terminal::is_watched();
    let recording = Replay::of(RECORDING, "of the demo").map_err(|error| Failure::new(error.kind(), &error))?;
    let recording = if watched { recording.with_pace(PACE) } else { recording };
    if !global.json {
        terminal::note_faintly("The model's responses are replayed from a recording; the tools run live.");
        terminal::note(&format!("{} {REQUEST}", styled(GOOD, "›")));
    }
    new_runtime()?.block_on(async {
        let helve = Helve::builder().redactor(redactor.clone()).builtins().build().await;
        let helve = helve.map_err(|error| Failure::new("failed", error))?;
        let mut session = Session::of(helve.project_agent(None, recording));
        let mut view = RunView::new(Spinner::new());
        let result = session.run(RunInput::Prompt(REQUEST), &mut view, global.json).await;
        let code = session.report(result)?;
        if !global.json {
            terminal::note_faintly(
                "\nUse your own model: set an API key such as OPENROUTER_API_KEY, or start Ollama; then run `helve chat`.",
            );
            terminal::note_faintly(
                "Add your own tools: `helve init my-project`. Trace a call: `helve tools call calculate 'expression=6*7' -v`.",
            );
        }
        Ok(code)
    })
}
