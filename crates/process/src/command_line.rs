//! Examines the command in a definition: which files of the project the command runs, in which folder, and how Helve shows the command to
//! the person who decides whether to trust the project.

mod shell;
mod survey;

use std::path::{Path, PathBuf};

use helve_core::authored::FieldError;
use helve_core::printable;

use survey::Survey;

/// A command as written in a definition, before variables are expanded.
#[derive(Debug, Clone, Copy)]
pub struct CommandLine<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// The entries of the field `env`: `NAME`, or `NAME=value`.
    pub env: &'a [String],
    /// The folder that the program runs in, relative to the project folder; `None` for the project folder.
    pub folder: Option<&'a str>,
}

impl CommandLine<'_> {
    /// Returns the existing files of the project that the command names, such as scripts. Also includes symbolic links in the project that
    /// lead to files outside it, but no other outside files, such as an interpreter.
    #[must_use]
    pub fn scripts(&self, project: &Path) -> Vec<PathBuf> {
        Survey::of(self, project).files()
    }

    /// Describes what the command may run in addition to its [`scripts`](Self::scripts), for the decision whether to trust a folder.
    /// Each entry is a noun phrase, such as "code that `npx` downloads".
    ///
    /// Helve never covers the files that a script itself reads; the list does not mention them.
    #[must_use]
    pub fn uncovered(&self, project: &Path) -> Vec<String> {
        Survey::of(self, project).gaps()
    }

    /// Formats the command as a user would type it in a shell, for the decision whether to trust a folder.
    ///
    /// Variables come before the program, the folder after the arguments. The result hides nothing: it contains the values of all variables
    /// that the file sets, even those with a secret name. It quotes words with special characters and escapes deceptive characters.
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

    /// Returns the project folder and the folder that the program runs in, both as absolute paths without symbolic links.
    ///
    /// # Errors
    /// Returns an error if one of the folders does not exist or is not a folder, or if the program's folder is outside the project.
    pub fn folders(&self, project: &Path) -> Result<(PathBuf, PathBuf), FieldError> {
        let real = project.canonicalize().map_err(|error| FieldError::new("", format!("cannot open the project's folder: {error}")))?;
        let Some(written) = self.folder else { return Ok((real.clone(), real)) };
        let wrong =
            |message: String| FieldError::new("/working_folder", message).hint("name a folder inside the project, such as `scripts`");
        let folder = real.join(written).canonicalize().map_err(|error| wrong(format!("cannot open the folder `{written}`: {error}")))?;
        if !folder.starts_with(&real) {
            return Err(wrong(format!("the folder `{written}` is outside the project")));
        }
        if !folder.is_dir() {
            return Err(wrong(format!("`{written}` is not a folder")));
        }
        Ok((real, folder))
    }
}

/// Quotes a word for a shell, if necessary.
fn quote(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_-./=:,@%+{}".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Newlines are escaped too: a second line could be taken for another command.
    let shown = printable::escape(word).replace('\n', "\\n").replace('\t', "\\t").replace('\'', "'\\''");
    format!("'{shown}'")
}

#[cfg(test)]
mod tests;
