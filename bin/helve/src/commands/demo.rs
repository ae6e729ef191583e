//! `helve demo`: a first look without a key. The model's words are a recording; the tools really run.

use std::process::ExitCode;
use std::time::Duration;

use helve::Helve;
use helve::model::Replay;
use helve::secret::Redactor;

use crate::chat::session::Session;
use crate::chat::show::Show;
use crate::chat::spinner::Spinner;
use crate::cli::Global;
use crate::failure::Failure;
use crate::terminal::{self, FAINT, GOOD, styled};

const RECORDING: &str = include_str!("demo/recording.jsonl");
const REQUEST: &str = "I stay 3 nights in Kyoto at 129.50 € a night plus 7 % tax, and the train takes 2.5 hours for 480 km. \
What does the hotel cost, how many miles is that, and how fast is the train?";
/// So that the words can be seen coming, and the whole is over within a second.
const PACE: Duration = Duration::from_millis(9);

/// Plays the recording.
pub fn run(global: &Global, redactor: &Redactor) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed", format_args!("the runtime cannot start: {error}")))?;
    let watched = terminal::is_watched();
    let recording = Replay::of(RECORDING, "of the demo").map_err(|error| Failure::new(error.kind(), &error))?;
    let recording = if watched { recording.with_pace(PACE) } else { recording };
    if !global.json {
        terminal::note(&styled(FAINT, "A recording: the model's words were said before, the tools run now."));
        terminal::note(&format!("{} {REQUEST}", styled(GOOD, "›")));
    }
    runtime.block_on(async {
        let helve = Helve::builder().redactor(redactor.clone()).builtins().build().await;
        let helve = helve.map_err(|error| Failure::new("failed", error))?;
        let mut session = Session::of(helve.project_agent(None, recording));
        let mut show = Show::new(Spinner::new());
        let ended = session.answer(crate::chat::session::Asked::Now(REQUEST), &mut show, global.json).await;
        let code = session.ended(ended)?;
        if !global.json {
            terminal::note(&styled(
                FAINT,
                "\nNow with a model of yours: set a key such as OPENROUTER_API_KEY, or start Ollama; then `helve chat`.",
            ));
            terminal::note(&styled(
                FAINT,
                "Tools of yours: `helve init my-project`. The way of a call: `helve tools call calculate 'expression=6*7' -v`.",
            ));
        }
        Ok(code)
    })
}
