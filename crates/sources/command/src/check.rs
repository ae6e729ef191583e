//! Checks what people wrote about a command tool and makes the tool, or says which field is wrong.

use std::path::Path;
use std::sync::Arc;

use helve_core::authored::{FieldError, read_parameters};
use helve_core::{Digest, DynTool, Permission, Redactor, Schema, ToolKind, ToolSpec};
use helve_process::{CommandLine, Environment, Scripts};
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
        let (project, folder) = self.line().folders(folder)?;
        let stdin = self.stdin.unwrap_or(if argv.has_templates() { Stdin::None } else { Stdin::Json });
        let reads_json = stdin == Stdin::Json;
        let scripts = Scripts::load(&self.line(), &project);
        let files: Vec<_> = scripts.files().iter().map(|(file, digest)| (file.to_string_lossy(), digest)).collect();
        let behind = json!([project.to_string_lossy(), folder.to_string_lossy(), self.command, self.env, reads_json, files]).to_string();
        Ok(Arc::new(CommandTool {
            spec: spec.with_implementation(Digest::of([behind.as_bytes()])).share(),
            argv,
            environment: Environment::read(&self.env, &attempt::OWN, redactor)?,
            project,
            folder,
            scripts,
            reads_json,
            format: self.format,
            max_bytes: self.checked_bytes()?,
            redactor: redactor.clone(),
        }))
    }

    /// What it runs.
    #[must_use]
    pub fn line(&self) -> CommandLine<'_> {
        CommandLine { words: &self.command, env: &self.env, folder: self.working_folder.as_deref() }
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
