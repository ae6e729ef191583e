//! Checks what people wrote about a command tool and makes the tool, or says which field is wrong.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::authored::{FieldError, read_parameters};
use helve_core::{Digest, DynTool, Permission, Redactor, Schema, ToolKind, ToolSpec, printable, secret};
use helve_process::Environment;
use serde_json::json;

use crate::argv::Argv;
use crate::attempt;
use crate::definition::{CommandDefinition, Stdin};
use crate::tool::CommandTool;

/// How much a program may write where its file does not say.
const DEFAULT_BYTES: u64 = 1 << 20;
/// How much a file may allow; the output is held in memory.
const MOST_BYTES: u64 = 64 << 20;

impl CommandDefinition {
    /// Makes the tool. `folder` is the project's, from which programs and files are found; `location` says to people
    /// where the tool was defined.
    ///
    /// The program itself is looked for when it is called, so that one that is not installed breaks only its calls.
    /// Values that `env` sets under a name that says secret become known to the redactor.
    ///
    /// # Errors
    /// The field that is wrong, and what would be right.
    pub fn tool(&self, folder: &Path, location: &str, redactor: &Redactor) -> Result<Arc<dyn DynTool>, FieldError> {
        let parameters = read_parameters(self.parameters.as_ref(), "/parameters")?;
        let argv = Argv::read(&self.command, &parameters)?;
        let mut spec = ToolSpec::new(self.name.as_str(), self.description.as_str(), parameters)?
            .with_rules(self.rules.rules(Permission::Auto))
            .with_origin(ToolKind::Command, location);
        if let Some(title) = &self.title {
            spec = spec.with_title(title.as_str());
        }
        if let Some(output) = &self.output {
            spec = spec.with_output(Schema::new(output.clone()).map_err(|error| FieldError::new("/output", error.to_string()))?);
        }
        let (project, folder) = self.folders(folder)?;
        let stdin = self.stdin.unwrap_or(if argv.has_templates() { Stdin::None } else { Stdin::Json });
        let reads_json = stdin == Stdin::Json;
        let scripts: Vec<_> =
            self.scripts(&project).iter().map(|script| (script.to_string_lossy().into_owned(), Self::script_digest(script))).collect();
        let behind = json!([project.to_string_lossy(), folder.to_string_lossy(), self.command, self.env, reads_json, scripts]).to_string();
        Ok(Arc::new(CommandTool {
            spec: spec.with_implementation(Digest::of([behind.as_bytes()])).share(),
            argv,
            environment: Environment::read(&self.env, &attempt::OWN, redactor)?,
            project,
            folder,
            reads_json,
            format: self.format,
            max_bytes: self.checked_bytes()?,
            redactor: redactor.clone(),
        }))
    }

    /// The files beside the project's own that the command names: scripts, above all. Links are followed, wherever they
    /// lead; what does not lie in the project, such as an interpreter, is not among them.
    #[must_use]
    pub fn scripts(&self, folder: &Path) -> Vec<PathBuf> {
        // A program is found from the project's folder, a file that it opens from the folder it runs in.
        let places = [folder.to_owned(), folder.join(self.working_folder.as_deref().unwrap_or_default())];
        let words = self.command.iter().filter(|word| Path::new(word).is_relative());
        let mut scripts: Vec<_> =
            words.flat_map(|word| places.iter().map(move |place| place.join(word))).filter(|path| path.is_file()).collect();
        scripts.sort_unstable();
        scripts.dedup();
        scripts
    }

    /// What a script says, as a hash; nothing where it cannot be read, or is too large to be a script.
    #[must_use]
    pub fn script_digest(script: &Path) -> Option<Digest> {
        const MAX_BYTES: u64 = 16 << 20;
        let mut bytes = Vec::new();
        std::fs::File::open(script).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= MAX_BYTES).then(|| Digest::of([bytes.as_slice()]))
    }

    /// What would run, as a person would type it: for the question whether a folder is trusted.
    ///
    /// Variables that the tool sets or is given stand before the program, without the values of secret ones; the folder
    /// stands after it. Nothing in it can hide: words with special characters are quoted, and characters that deceive
    /// are shown as escapes.
    #[must_use]
    pub fn what_runs(&self) -> String {
        let variables = self.env.iter().map(|entry| match entry.split_once('=') {
            // What `${NAME}` in the file stood for has been filled in by now.
            Some((name, _)) if secret::is_secret_variable(name) => format!("{}={}", quote(name), secret::MASK),
            Some((name, value)) => format!("{}={}", quote(name), quote(value)),
            None => format!("{0}=${0}", quote(entry)),
        });
        let mut words: Vec<_> = variables.chain(self.command.iter().map(|word| quote(word))).collect();
        if let Some(folder) = &self.working_folder {
            words.push(format!("(in {})", quote(folder)));
        }
        words.join(" ")
    }

    /// The project's folder and the one the program runs in, without links.
    fn folders(&self, project: &Path) -> Result<(PathBuf, PathBuf), FieldError> {
        let real =
            project.canonicalize().map_err(|error| FieldError::new("", format!("the project's folder cannot be opened: {error}")))?;
        let Some(written) = &self.working_folder else { return Ok((real.clone(), real)) };
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

    fn checked_bytes(&self) -> Result<u64, FieldError> {
        match self.max_bytes {
            None => Ok(DEFAULT_BYTES),
            Some(bytes @ 1..=MOST_BYTES) => Ok(bytes),
            Some(bytes) => {
                Err(FieldError::new("/max_bytes", format!("{bytes} bytes cannot be kept")).hint(format!("write 1 to {MOST_BYTES}")))
            }
        }
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
