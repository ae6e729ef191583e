//! Asking the person at the terminal whether a call may run.

use helve::{Decision, Grant, Question, Redactor, printable};

use crate::terminal::{self, CAREFUL, FAINT, STRONG, styled};

/// How much of the arguments is shown; the middle is cut, never an end.
const SHOWN: usize = 4_000;

/// Shows the exact call and reads yes or no. Anything that is not a clear yes is a no.
pub fn ask(question: &Question, redactor: &Redactor, read: &mut dyn FnMut(&str) -> Option<String>) -> Grant {
    let show_all = || lines(question, redactor, usize::MAX).iter().for_each(|line| terminal::note_exactly(line));
    show(question, redactor);
    let answer = loop {
        let answer = read(&format!("Run it? {}", styled(FAINT, "[y]es / [n]o / [s]how everything")));
        match answer.as_deref().map(str::to_lowercase).as_deref() {
            Some("y" | "yes" | "是" | "好") => break Decision::Approve,
            None | Some("n" | "no" | "否" | "不" | "") => break Decision::Deny,
            Some("s" | "show") => show_all(),
            Some(_) => terminal::note("Please answer y, n or s."),
        }
    };
    question.answer(answer, who())
}

/// Shows the exact call.
pub fn show(question: &Question, redactor: &Redactor) {
    for line in lines(question, redactor, SHOWN) {
        terminal::note_exactly(&line);
    }
}

/// The grant of a person who said yes beforehand.
pub fn beforehand(question: &Question) -> Grant {
    question.answer(Decision::Approve, who())
}

/// Who answers.
pub fn who() -> String {
    let user = helve::environment::var("USER").filter(|user| !user.is_empty());
    user.map_or_else(|| "terminal".to_owned(), |user| format!("terminal:{user}"))
}

fn lines(question: &Question, redactor: &Redactor, most: usize) -> Vec<String> {
    let arguments = serde_json::to_string_pretty(&question.call.arguments).unwrap_or_default();
    let arguments = redactor.clean(&arguments).unwrap_or(arguments);
    let shown = printable::shorten(&printable::escape(&arguments), most);
    let mut lines = vec![format!("{} {}", styled(CAREFUL, "Approval needed:"), styled(STRONG, &printable::escape_line(&question.tool)))];
    lines.extend(shown.lines().map(|line| format!("  {line}")));
    lines.push(styled(FAINT, &format!("  because {}", printable::escape_line(&question.reason))));
    lines.push(styled(FAINT, &format!("  digest {}", question.digest)));
    lines
}

#[cfg(test)]
mod tests {
    use helve::{Caller, Schema, ToolCall, ToolSpec};
    use serde_json::{Value, json};

    use super::*;

    fn question(arguments: Value) -> Question {
        let spec = ToolSpec::new("wipe", "Wipes.", Schema::any_object()).expect("a spec");
        Question::new(ToolCall::new("wipe", arguments), &"s".into(), &spec, Caller::default(), "a rule says so".into())
    }

    fn answered(words: &[&str]) -> Decision {
        let mut words = words.iter().map(ToString::to_string);
        ask(&question(json!({})), &Redactor::default(), &mut |_| words.next()).decision
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        assert_eq!(answered(&["y"]), Decision::Approve);
        assert_eq!(answered(&["what?", "s", "YES"]), Decision::Approve);
        for no in [&["n"][..], &[""], &[], &["maybe"]] {
            assert_eq!(answered(no), Decision::Deny, "{no:?}");
        }
    }

    #[test]
    fn a_reason_is_one_line_of_the_question() {
        let mut hostile = question(json!({}));
        hostile.reason = "fine\nAllow? yes\u{1b}[1A".to_owned();
        let shown = lines(&hostile, &Redactor::default(), SHOWN);
        assert!(shown.iter().all(|line| !line.starts_with("Allow") && !line.contains("\u{1b}[1A")), "{shown:?}");
        assert!(!shown.join("\n").contains("fine\nAllow"), "{shown:?}");
    }

    /// S9: nothing in the arguments can hide, and the end of a long one is shown.
    #[test]
    fn arguments_are_shown_as_they_are() {
        let hidden = json!({"x": format!("\u{1b}[2J\u{202e}\u{200b}{}PAYLOAD", "a".repeat(100_000))});
        let whole = lines(&question(hidden.clone()), &Redactor::default(), usize::MAX).join("\n");
        assert!(whole.len() > 100_000);
        let text = lines(&question(hidden), &Redactor::default(), SHOWN).join("\n");
        assert!(text.contains("PAYLOAD") && text.contains("characters left out"), "{text}");
        assert!(!text.contains('\u{202e}') && !text.contains("\u{1b}[2J") && !text.contains('\u{200b}'));
    }
}
