//! Asks a person about a call that needs approval: shows the exact call, and reads the decision.

use helve::internal::json::{self, JsonLimits};
use helve::internal::printable;
use helve::permission::{ApprovalRequest, Decision};
use helve::secret::Redactor;
use serde_json::Value;

use super::edit_arguments::edit_arguments;
use crate::terminal::language::{Language, is_no, is_yes};
use crate::terminal::{self, CAREFUL, FAINT, STRONG, styled};

/// Maximum number of characters of the arguments that the prompt shows. Of longer arguments, the middle is cut out.
const SHOWN: usize = 4_000;

/// Reads one line: takes the prompt and the initial text, and returns `None` at the end of the input.
pub type ReadLine<'a> = &'a mut dyn FnMut(&str, &str) -> Option<String>;

/// Shows the exact call and reads the decision. The end of the input denies.
///
/// With `in_conversation`, the prompt also offers to approve all calls to the tool in this conversation.
pub fn ask(request: &ApprovalRequest, redactor: &Redactor, in_conversation: bool, read: ReadLine<'_>) -> Decision {
    let language = Language::of_environment();
    let show = |most: usize| lines(request, redactor, most).iter().for_each(|line| terminal::note_exactly(line));
    show(SHOWN);
    if in_conversation {
        // What was typed while the agent worked is not a decision.
        terminal::discard_typed();
    }
    loop {
        let Some(line) = read(&prompt(language, in_conversation), "") else { return Decision::Deny { reason: None } };
        match parse(&line) {
            TypedDecision::Yes => return Decision::Approve,
            TypedDecision::Always if in_conversation => return Decision::Always,
            TypedDecision::No(reason) => return Decision::Deny { reason },
            TypedDecision::Edit => {
                if let Some(arguments) = edit(&request.call.arguments, read) {
                    return Decision::Edit(arguments);
                }
            }
            TypedDecision::ShowAll => show(usize::MAX),
            TypedDecision::Always | TypedDecision::Unclear => terminal::note(retry_prompt(language, in_conversation)),
        }
    }
}

/// The decision that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TypedDecision {
    Yes,
    /// Deny, with the reason if the person gave one.
    No(Option<String>),
    /// Approve all calls to this tool in the conversation.
    Always,
    Edit,
    ShowAll,
    Unclear,
}

/// Parses a line. Only a clear yes approves: text after a yes makes it unclear, text after a no is the reason.
fn parse(line: &str) -> TypedDecision {
    let line = line.trim();
    let is_end = |character: char| character.is_whitespace() || ",.:;!，。：；！、".contains(character);
    let (word, rest) = line.split_at(line.find(is_end).unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_end).trim();
    match (word.to_lowercase().as_str(), rest) {
        (word, "") if is_yes(word) => TypedDecision::Yes,
        (word, reason) if is_no(word) => TypedDecision::No(Some(reason.to_owned()).filter(|reason| !reason.is_empty())),
        ("a" | "always" | "总是", "") => TypedDecision::Always,
        ("e" | "edit" | "编辑", "") => TypedDecision::Edit,
        ("s" | "show" | "全部", "") => TypedDecision::ShowAll,
        _ => TypedDecision::Unclear,
    }
}

fn prompt(language: Language, in_conversation: bool) -> String {
    let question = language.choose("Run it? ", "是否运行？");
    let choices = if in_conversation {
        language
            .choose("[y]es / [n]o, reason / [a]lways / [e]dit / [s]how all", "[y] 是 / [n] 否，原因 / [a] 总是 / [e] 编辑 / [s] 显示全部")
    } else {
        language.choose("[y]es / [n]o, reason / [e]dit / [s]how all", "[y] 是 / [n] 否，原因 / [e] 编辑 / [s] 显示全部")
    };
    format!("{question}{} ", styled(FAINT, choices))
}

fn retry_prompt(language: Language, in_conversation: bool) -> &'static str {
    if in_conversation {
        language.choose("Please answer y, n, a, e or s.", "请回答 y、n、a、e 或 s。")
    } else {
        language.choose("Please answer y, n, e or s.", "请回答 y、n、e 或 s。")
    }
}

/// Reads new arguments from the person's editor or from one line. If there are none, prints why and returns `None`.
fn edit(arguments: &Value, read: ReadLine<'_>) -> Option<Value> {
    let edited = edit_arguments(arguments).unwrap_or_else(|| {
        let line = read("JSON: ", &arguments.to_string()).ok_or("the arguments are unchanged")?;
        json::parse(line.as_bytes(), JsonLimits::ARGUMENTS).map_err(|error| error.to_string())
    });
    match edited {
        Ok(value) if value.is_object() => return Some(value),
        Ok(_) => terminal::note("The arguments must be a JSON object."),
        Err(error) => terminal::note(&printable::escape(&error)),
    }
    None
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
    use serde_json::json;

    use super::*;

    fn request(arguments: Value) -> ApprovalRequest {
        let spec = ToolSpec::new("wipe", "Wipes.", Schema::any_object()).expect("a spec");
        ApprovalRequest::new(ToolCall::new("wipe", arguments), &"s".into(), &spec, Caller::default(), "a rule says so".into())
    }

    fn decide(lines: &[&str], in_conversation: bool) -> Decision {
        let mut lines = lines.iter().map(ToString::to_string);
        ask(&request(json!({})), &Redactor::default(), in_conversation, &mut |_, _| lines.next())
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        assert_eq!(decide(&["y"], false), Decision::Approve);
        assert_eq!(decide(&["what?", "s", "YES"], false), Decision::Approve);
        for no in [&["n"][..], &[""], &[], &["maybe"], &["always"]] {
            assert_eq!(decide(no, false), Decision::Deny { reason: None }, "{no:?}");
        }
        assert_eq!(decide(&["always"], true), Decision::Always);
    }

    #[test]
    fn answers_are_understood_in_both_languages() {
        let no = |reason: &str| TypedDecision::No(Some(reason.to_owned()));
        for (decision, lines) in [
            (TypedDecision::Yes, &["y", "YES", " yes ", "Yes.", "是", "是的！", "好"][..]),
            (TypedDecision::Always, &["a", "always", "总是"]),
            (TypedDecision::Edit, &["e", "Edit", "编辑"]),
            (TypedDecision::ShowAll, &["s", "show", "全部"]),
            (TypedDecision::No(None), &["n", "No", "no.", "否", "不", "不要。"]),
            (no("too Risky, really"), &["no too Risky, really", "n: too Risky, really", "No, too Risky, really"]),
            (no("太危险"), &["否，太危险", "不 太危险", "n 太危险"]),
            (
                TypedDecision::Unclear,
                &["", "  ", "yes but not now", "y n", "maybe", "nope?", "always not", "不知道", "是不是", "yesterday", "edit it"],
            ),
        ] {
            for line in lines {
                assert_eq!(parse(line), decision, "{line}");
            }
        }
    }

    #[test]
    fn people_are_asked_in_their_language() {
        assert!(prompt(Language::English, true).starts_with("Run it?") && prompt(Language::Chinese, true).starts_with("是否运行？"));
        assert!(!prompt(Language::English, false).contains("always"));
        assert_ne!(retry_prompt(Language::English, true), retry_prompt(Language::Chinese, true));
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
