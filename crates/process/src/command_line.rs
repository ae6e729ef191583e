//! A command as a definition writes it: which files of the project it runs, where it runs, and how Helve shows it to the person who must
//! trust it.

mod shell;
mod survey;

use std::path::{Path, PathBuf};

use helve_core::authored::FieldError;
use helve_core::printable;

use survey::Survey;

/// A command as a definition writes it.
#[derive(Debug, Clone, Copy)]
pub struct CommandLine<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// Its environment variables.
    pub env: &'a [String],
    /// The folder it runs in, relative to the project's folder.
    pub folder: Option<&'a str>,
}

impl CommandLine<'_> {
    /// Returns the files of the project that the command names, above all scripts. Symbolic links are followed, wherever they lead.
    /// Files outside the project, such as an interpreter, are not included.
    #[must_use]
    pub fn scripts(&self, project: &Path) -> Vec<PathBuf> {
        Survey::of(self, project).files()
    }

    /// Returns what the command may run that [`scripts`](Self::scripts) does not cover, for the decision whether to trust a folder.
    /// Each entry continues the sentence "Changes are not noticed in …".
    ///
    /// Files that a script itself reads are never covered, and not listed here.
    #[must_use]
    pub fn uncovered(&self, project: &Path) -> Vec<String> {
        Survey::of(self, project).gaps()
    }

    /// Shows what would run as one would type it, for the decision whether to trust a folder.
    ///
    /// Variables come before the program, the folder after it. Nothing can hide in it: values from the file are shown whatever the name
    /// of their variable, words with special characters are quoted, and deceptive characters are escaped.
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

    /// Returns the project's folder and the folder that the program runs in, both without symbolic links.
    ///
    /// # Errors
    /// Returns an error if one of them is not a folder, or if the second is outside the first.
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

/// A word as one would type it in a shell.
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
