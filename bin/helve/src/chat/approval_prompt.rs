//! The request before a call that needs approval: how it is asked, what the answer means, and editing the arguments.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use helve::internal::environment;
use helve::internal::json::{self, JsonLimits};
use serde_json::Value;

use crate::terminal::{FAINT, styled};

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Run it.
    Yes,
    /// Do not run it, and perhaps why not.
    No(Option<String>),
    /// Run it, and calls like it from now on.
    Always,
    /// Change the arguments first.
    Edit,
    /// Neither of these. Ask again.
    Unclear,
}

/// The language in which people are asked. Answers are understood in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    Chinese,
}

impl Language {
    /// The language of this person's environment.
    pub fn of_environment() -> Self {
        let set = |name| environment::var(name).filter(|value| !value.is_empty());
        Self::of_locale(&["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set).unwrap_or_default())
    }

    fn of_locale(locale: &str) -> Self {
        if locale.to_lowercase().starts_with("zh") { Self::Chinese } else { Self::English }
    }
}

/// The request, with what can be answered.
pub fn prompt(language: Language) -> String {
    match language {
        Language::English => format!("Run it? {} ", styled(FAINT, "[y]es / [n]o, why / [a]lways / [e]dit")),
        Language::Chinese => format!("运行吗？{} ", styled(FAINT, "[y] 是 / [n] 否，原因 / [a] 总是 / [e] 编辑")),
    }
}

/// What to say when the answer was unclear.
pub fn again(language: Language) -> &'static str {
    match language {
        Language::English => "Please answer y, n, a or e.",
        Language::Chinese => "请回答 y、n、a 或 e。",
    }
}

/// Reads an answer. Only a clear yes is a yes: words after it make it unclear, while words after a no are its reason.
pub fn read(line: &str) -> Reply {
    let line = line.trim();
    let is_end = |character: char| character.is_whitespace() || ",.:;!，。：；！、".contains(character);
    let (word, rest) = line.split_at(line.find(is_end).unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_end).trim();
    match (word.to_lowercase().as_str(), rest) {
        ("y" | "yes" | "是" | "是的" | "好" | "好的", "") => Reply::Yes,
        ("a" | "always" | "总是", "") => Reply::Always,
        ("e" | "edit" | "编辑", "") => Reply::Edit,
        ("n" | "no" | "否" | "不" | "不行" | "不要", "") => Reply::No(None),
        ("n" | "no" | "否" | "不" | "不行" | "不要", reason) => Reply::No(Some(reason.to_owned())),
        _ => Reply::Unclear,
    }
}

/// Lets the person change arguments in their editor; nothing if they have not set one.
///
/// # Errors
/// A sentence that says why there are no new arguments. The old ones still hold.
pub fn edit_arguments(arguments: &Value) -> Option<Result<Value, String>> {
    let set = |name| environment::var(name).filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR"))?;
    Some(edit_with(&editor, arguments))
}

fn edit_with(editor: &str, arguments: &Value) -> Result<Value, String> {
    let failed = |error: std::io::Error| format!("the arguments could not be edited: {error}");
    let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
    // Only this user may read the file, and it is gone afterwards.
    let mut file = tempfile::Builder::new().prefix("helve-").suffix(".json").tempfile().map_err(failed)?;
    writeln!(file, "{text}").and_then(|()| file.flush()).map_err(failed)?;
    let status = command(editor, file.path()).status().map_err(|error| format!("the editor `{editor}` could not be started: {error}"))?;
    if !status.success() {
        return Err(format!("the editor `{editor}` ended with {status}"));
    }
    // Some editors put another file in its place, so it is opened once more.
    let size = std::fs::metadata(file.path()).map_err(failed)?.len();
    if size > JsonLimits::ARGUMENTS.bytes as u64 {
        return Err("the arguments are too large".to_owned());
    }
    let edited = std::fs::read(file.path()).map_err(failed)?;
    json::parse(&edited, JsonLimits::ARGUMENTS).map_err(|error| error.to_string())
}

/// The editor as the shell understands it, because `EDITOR` may hold arguments and quotes.
#[cfg(unix)]
fn command(editor: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file);
    // It is the person's own, and knows what they know.
    command.env_clear().envs(environment::vars_os());
    command
}

/// The editor and its arguments, parted by spaces.
#[cfg(not(unix))]
fn command(editor: &str, file: &Path) -> Command {
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(editor));
    command.args(words).arg(file);
    command
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_understood_in_both_languages() {
        let no = |reason: &str| Reply::No(Some(reason.to_owned()));
        for (reply, lines) in [
            (Reply::Yes, &["y", "YES", " yes ", "Yes.", "是", "是的！", "好"][..]),
            (Reply::Always, &["a", "always", "总是"]),
            (Reply::Edit, &["e", "Edit", "编辑"]),
            (Reply::No(None), &["n", "No", "no.", "否", "不", "不要。"]),
            (no("too Risky, really"), &["no too Risky, really", "n: too Risky, really", "No, too Risky, really"]),
            (no("太危险"), &["否，太危险", "不 太危险", "n 太危险"]),
            (
                Reply::Unclear,
                &["", "  ", "yes but not now", "y n", "maybe", "nope?", "always not", "不知道", "是不是", "yesterday", "edit it"],
            ),
        ] {
            for line in lines {
                assert_eq!(read(line), reply, "{line}");
            }
        }
    }

    #[test]
    fn people_are_asked_in_their_language() {
        assert_eq!(Language::of_locale("zh_CN.UTF-8"), Language::Chinese);
        assert_eq!(Language::of_locale("de_DE"), Language::English);
        assert!(prompt(Language::English).starts_with("Run it?") && prompt(Language::Chinese).starts_with("运行吗？"));
        assert_ne!(again(Language::English), again(Language::Chinese));
    }

    #[cfg(unix)]
    #[test]
    fn arguments_are_edited_in_a_private_file() {
        let arguments = json!({"a": 2, "b": [1]});
        assert_eq!(edit_with("sed -i 's/2/3/'", &arguments), Ok(json!({"a": 3, "b": [1]})));
        assert_eq!(edit_with("true", &arguments), Ok(arguments.clone()));
        let folder = tempfile::tempdir().expect("a folder");
        let seen = folder.path().join("seen");
        edit_with(&format!("f() {{ ls -l \"$1\" > {}; }}; f", seen.display()), &arguments).expect("edited");
        let seen = std::fs::read_to_string(seen).expect("seen");
        assert!(seen.starts_with("-rw-------"), "{seen}");
        let file = seen.split_whitespace().last().expect("a path");
        assert!(Path::new(file).extension().is_some_and(|extension| extension == "json") && !Path::new(file).exists(), "{file}");
    }

    #[cfg(unix)]
    #[test]
    fn what_went_wrong_is_said() {
        let failure = |editor: &str| edit_with(editor, &json!({})).expect_err("a failure");
        assert!(failure("false").contains("ended with"), "{}", failure("false"));
        assert!(failure("f() { echo '{\"a\": 1,' > \"$1\"; }; f").contains("line 2"));
        assert!(failure("f() { head -c 2000000 /dev/zero > \"$1\"; }; f").contains("too large"));
        assert!(failure("rm").contains("could not be edited"));
    }
}
