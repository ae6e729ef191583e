//! A command as a file writes it: which files of the project it runs, where it runs, and how it is shown to whoever must trust it.

mod shell;
mod survey;

use std::path::{Path, PathBuf};

use helve_core::authored::FieldError;
use helve_core::printable;

use survey::Survey;

/// A command as a file writes it.
#[derive(Debug, Clone, Copy)]
pub struct CommandLine<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// The variables that it gets.
    pub env: &'a [String],
    /// The folder it runs in, from the project's folder.
    pub folder: Option<&'a str>,
}

impl CommandLine<'_> {
    /// The files beside the project's own that the command names: scripts, above all. Links are followed, wherever they
    /// lead; what does not lie in the project, such as an interpreter, is not among them.
    #[must_use]
    pub fn scripts(&self, project: &Path) -> Vec<PathBuf> {
        Survey::of(self, project).files()
    }

    /// What the command may run that is not covered by [`scripts`](Self::scripts), for the question whether a folder is
    /// trusted. Each entry continues the sentence "Changes are not noticed in …".
    ///
    /// Files that a script reads by itself are never covered, and not listed here.
    #[must_use]
    pub fn uncovered(&self, project: &Path) -> Vec<String> {
        Survey::of(self, project).gaps()
    }

    /// What would run, as a person would type it: for the question whether a folder is trusted.
    ///
    /// Variables that are set or passed through stand before the program, the folder stands after it. Nothing in it can
    /// hide: values that stand in the file are shown whatever the variable is called, words with special characters are
    /// quoted, and characters that deceive are shown as escapes.
    #[must_use]
    pub fn shown(&self) -> String {
        let variables = self.env.iter().map(|entry| match entry.split_once('=') {
            Some((name, value)) => format!("{}={}", quote(name), quote(value)),
            None => format!("{0}=${0}", quote(entry)),
        });
        let mut words: Vec<_> = variables.chain(self.words.iter().map(|word| quote(word))).collect();
        if let Some(folder) = self.folder {
            words.push(format!("(in {})", quote(folder)));
        }
        words.join(" ")
    }

    /// The project's folder and the one the program runs in, without links.
    ///
    /// # Errors
    /// Where one of them is no folder, or the second lies outside the first.
    pub fn folders(&self, project: &Path) -> Result<(PathBuf, PathBuf), FieldError> {
        let real =
            project.canonicalize().map_err(|error| FieldError::new("", format!("the project's folder cannot be opened: {error}")))?;
        let Some(written) = self.folder else { return Ok((real.clone(), real)) };
        let wrong =
            |message: String| FieldError::new("/working_folder", message).hint("name a folder inside the project, such as `scripts`");
        let folder =
            real.join(written).canonicalize().map_err(|error| wrong(format!("the folder `{written}` cannot be opened: {error}")))?;
        if !folder.starts_with(&real) {
            return Err(wrong(format!("the folder `{written}` is outside the project")));
        }
        if !folder.is_dir() {
            return Err(wrong(format!("`{written}` is not a folder")));
        }
        Ok((real, folder))
    }
}

/// A word as it would be typed in a shell.
fn quote(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_-./=:,@%+{}".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Here newlines are shown as well: a second line could be taken for another command.
    let shown = printable::escape(word).replace('\n', "\\n").replace('\t', "\\t").replace('\'', "'\\''");
    format!("'{shown}'")
}

#[cfg(test)]
mod tests;
