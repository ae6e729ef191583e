//! The person at the terminal: whether a call may run, and what its tool wants to know.

use std::time::{Duration, Instant};

use helve::internal::printable;
use helve::permission::{ApprovalRequest, Approver, Decision};
use helve::secret::Redactor;
use parking_lot::Mutex;

use super::input;
use crate::terminal::{self, CAREFUL, FAINT, STRONG, styled};

/// How much of the arguments is shown; the middle is cut, never an end.
const SHOWN: usize = 4_000;
/// A call that takes longer than this shows that it still runs.
const SOON: Duration = Duration::from_secs(1);

/// The person who made the call, and what they see while it runs.
pub struct AtTerminal {
    /// Whether the call was approved beforehand.
    yes: bool,
    redactor: Redactor,
    watched: Mutex<Watched>,
}

/// What is shown of a call that runs.
struct Watched {
    since: Instant,
    shown: bool,
}

impl AtTerminal {
    pub fn new(yes: bool, redactor: &Redactor) -> Self {
        Self { yes, redactor: redactor.clone(), watched: Mutex::new(Watched { since: Instant::now(), shown: false }) }
    }

    /// Shows for how long the call runs, once that is worth a word.
    pub fn show_progress(&self, name: &str) {
        let mut watched = self.watched.lock();
        let seconds = watched.since.elapsed();
        if seconds >= SOON {
            watched.shown = true;
            terminal::progress(&format!("{name} … {:.0} s (Ctrl-C cancels)", seconds.as_secs_f64()));
        }
    }

    /// Takes that line away again. The time that a person takes is not the call's.
    pub fn clear_progress(&self) {
        let mut watched = self.watched.lock();
        if watched.shown {
            terminal::progress("");
        }
        *watched = Watched { since: Instant::now(), shown: false };
    }
}

impl Approver for AtTerminal {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.clear_progress();
        let answered = match () {
            () if request.input.is_some() => answer(request),
            () if self.yes => Decision::Approve,
            () if terminal::can_ask() => ask(request, &self.redactor, &mut terminal::ask),
            () => Decision::Later,
        };
        self.clear_progress();
        answered
    }

    fn name(&self) -> String {
        who()
    }
}

/// What the person answers to a tool. Where there is no person, the tool is told no.
fn answer(request: &ApprovalRequest) -> Decision {
    if !terminal::can_ask() {
        terminal::note(&styled(
            FAINT,
            &format!("not a terminal, so the answer to the tool is no: {}", printable::escape_line(&request.reason)),
        ));
        return Decision::Deny { reason: None };
    }
    let needed = request.input.as_ref();
    let written = needed.and_then(|needed| input::ask(&request.tool, needed, &mut terminal::ask));
    written.map_or(Decision::Deny { reason: None }, Decision::Edit)
}

/// Shows the exact call and reads yes or no. Anything that is not a clear yes is a no.
fn ask(request: &ApprovalRequest, redactor: &Redactor, read: &mut dyn FnMut(&str) -> Option<String>) -> Decision {
    show(request, redactor);
    loop {
        let answer = read(&format!("Run it? {}", styled(FAINT, "[y]es / [n]o / [s]how everything")));
        match answer.as_deref().map(str::to_lowercase).as_deref() {
            Some("y" | "yes" | "是" | "好") => return Decision::Approve,
            None | Some("n" | "no" | "否" | "不" | "") => return Decision::Deny { reason: None },
            Some("s" | "show") => lines(request, redactor, usize::MAX).iter().for_each(|line| terminal::note_exactly(line)),
            Some(_) => terminal::note("Please answer y, n or s."),
        }
    }
}

/// Shows the exact call.
pub fn show(request: &ApprovalRequest, redactor: &Redactor) {
    for line in lines(request, redactor, SHOWN) {
        terminal::note_exactly(&line);
    }
}

/// Who answers.
pub fn who() -> String {
    let user = helve::internal::environment::var("USER").filter(|user| !user.is_empty());
    user.map_or_else(|| "terminal".to_owned(), |user| format!("terminal:{user}"))
}

fn lines(request: &ApprovalRequest, redactor: &Redactor, most: usize) -> Vec<String> {
    let arguments = serde_json::to_string_pretty(&request.call.arguments).unwrap_or_default();
    let arguments = redactor.clean(&arguments).unwrap_or(arguments);
    let shown = printable::shorten(&printable::escape(&arguments), most);
    let mut lines = vec![format!("{} {}", styled(CAREFUL, "Approval needed:"), styled(STRONG, &printable::escape_line(&request.tool)))];
    lines.extend(shown.lines().map(|line| format!("  {line}")));
    lines.push(styled(FAINT, &format!("  because {}", printable::escape_line(&request.reason))));
    lines.push(styled(FAINT, &format!("  digest {}", request.digest)));
    lines
}

#[cfg(test)]
mod tests {
    use helve::ToolCall;
    use helve::tool::{Caller, Schema, ToolSpec};
    use serde_json::{Value, json};

    use super::*;

    fn request(arguments: Value) -> ApprovalRequest {
        let spec = ToolSpec::new("wipe", "Wipes.", Schema::any_object()).expect("a spec");
        ApprovalRequest::new(ToolCall::new("wipe", arguments), &"s".into(), &spec, Caller::default(), "a rule says so".into())
    }

    fn answered(words: &[&str]) -> Decision {
        let mut words = words.iter().map(ToString::to_string);
        ask(&request(json!({})), &Redactor::default(), &mut |_| words.next())
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        assert_eq!(answered(&["y"]), Decision::Approve);
        assert_eq!(answered(&["what?", "s", "YES"]), Decision::Approve);
        for no in [&["n"][..], &[""], &[], &["maybe"]] {
            assert_eq!(answered(no), Decision::Deny { reason: None }, "{no:?}");
        }
    }

    #[test]
    fn a_reason_is_one_line_of_the_question() {
        let mut hostile = request(json!({}));
        hostile.reason = "fine\nAllow? yes\u{1b}[1A".to_owned();
        let shown = lines(&hostile, &Redactor::default(), SHOWN);
        assert!(shown.iter().all(|line| !line.starts_with("Allow") && !line.contains("\u{1b}[1A")), "{shown:?}");
        assert!(!shown.join("\n").contains("fine\nAllow"), "{shown:?}");
    }

    /// S9: nothing in the arguments can hide, and the end of a long one is shown.
    #[test]
    fn arguments_are_shown_as_they_are() {
        let hidden = json!({"x": format!("\u{1b}[2J\u{202e}\u{200b}{}PAYLOAD", "a".repeat(100_000))});
        let whole = lines(&request(hidden.clone()), &Redactor::default(), usize::MAX).join("\n");
        assert!(whole.len() > 100_000);
        let text = lines(&request(hidden), &Redactor::default(), SHOWN).join("\n");
        assert!(text.contains("PAYLOAD") && text.contains("characters left out"), "{text}");
        assert!(!text.contains('\u{202e}') && !text.contains("\u{1b}[2J") && !text.contains('\u{200b}'));
    }
}
