//! Lets a person change the arguments of a call in their editor.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use helve::internal::environment;
use helve::internal::json::{self, JsonLimits};
use serde_json::Value;

/// Opens the arguments in `$VISUAL` or `$EDITOR`. Returns `None` if neither is set.
///
/// # Errors
/// Returns a message if there are no new arguments.
pub fn edit_arguments(arguments: &Value) -> Option<Result<Value, String>> {
    let set = |name| environment::var(name).filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR"))?;
    Some(edit_with(&editor, arguments))
}

fn edit_with(editor: &str, arguments: &Value) -> Result<Value, String> {
    let failed = |error: std::io::Error| format!("cannot edit the arguments: {error}");
    let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
    // Only this user can read the file, and it is deleted afterwards.
    let mut file = tempfile::Builder::new().prefix("helve-").suffix(".json").tempfile().map_err(failed)?;
    writeln!(file, "{text}").and_then(|()| file.flush()).map_err(failed)?;
    let status = command(editor, file.path()).status().map_err(|error| format!("cannot start the editor `{editor}`: {error}"))?;
    if !status.success() {
        return Err(format!("the editor `{editor}` failed: {status}"));
    }
    // Some editors replace the file, so it is opened again by its path.
    let size = std::fs::metadata(file.path()).map_err(failed)?.len();
    if size > JsonLimits::ARGUMENTS.bytes as u64 {
        return Err("the arguments are too large".to_owned());
    }
    let edited = std::fs::read(file.path()).map_err(failed)?;
    json::parse(&edited, JsonLimits::ARGUMENTS).map_err(|error| error.to_string())
}

/// Returns the command that starts the editor. The shell runs it, because `EDITOR` may contain arguments and quotes.
#[cfg(unix)]
fn command(editor: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file);
    // The editor is the user's own program and gets the user's whole environment.
    command.env_clear().envs(environment::vars_os());
    command
}

/// Returns the command that starts the editor. Words are separated by spaces.
#[cfg(not(unix))]
fn command(editor: &str, file: &Path) -> Command {
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(editor));
    command.args(words).arg(file);
    command
}

#[cfg(all(test, unix))]
mod tests {
    use serde_json::json;

    use super::*;

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

    #[test]
    fn what_went_wrong_is_said() {
        let failure = |editor: &str| edit_with(editor, &json!({})).expect_err("a failure");
        assert!(failure("false").contains("failed: exit status"), "{}", failure("false"));
        assert!(failure("f() { echo '{\"a\": 1,' > \"$1\"; }; f").contains("line 2"));
        assert!(failure("f() { head -c 2000000 /dev/zero > \"$1\"; }; f").contains("too large"));
        assert!(failure("rm").contains("cannot edit the arguments"));
    }
}
