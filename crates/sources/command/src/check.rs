//! Checks the definition of a command tool, and creates the tool.

use std::path::Path;
use std::sync::Arc;

use helve_core::authored::{FieldError, read_spec};
use helve_core::{Digest, DynTool, Permission, Redactor, ToolKind};
use helve_process::{CommandLine, Environment, Scripts};
use serde_json::json;

use crate::argv::Argv;
use crate::attempt;
use crate::definition::{CommandDefinition, Stdin};
use crate::tool::CommandTool;

/// Default for the maximum size of a program's output, in bytes.
const DEFAULT_BYTES: u64 = 1 << 20;
/// Largest allowed value of `max_bytes`. The output is held in memory.
const MAX_BYTES: u64 = 64 << 20;

impl CommandDefinition {
    /// Creates the tool. `folder` is the project folder, which contains programs and files. `location` tells people where the tool is
    /// defined.
    ///
    /// Each call looks up the program, so a missing program makes only calls fail. Values in `env` whose names look like secrets are added
    /// to the redactor.
    ///
    /// # Errors
    /// Returns the first invalid field, and how to fix it.
    pub fn tool(&self, folder: &Path, location: &str, redactor: &Redactor) -> Result<Arc<dyn DynTool>, FieldError> {
        let spec = read_spec(&self.name, self.title.as_deref(), &self.description, self.parameters.as_ref(), self.output.as_ref())?;
        let spec = spec.with_rules(self.rules.rules(Permission::Auto)).with_origin(ToolKind::Command, location);
        let argv = Argv::read(&self.command, spec.input())?;
        let (project, folder) = self.line().folders(folder)?;
        let stdin = self.stdin.unwrap_or(if argv.has_templates() { Stdin::None } else { Stdin::Json });
        let reads_json = stdin == Stdin::Json;
        let scripts = Scripts::load(&self.line(), &project);
        let files: Vec<_> = scripts.files().iter().map(|(file, digest)| (file.to_string_lossy(), digest)).collect();
        let implementation =
            json!([project.to_string_lossy(), folder.to_string_lossy(), self.command, self.env, reads_json, files]).to_string();
        Ok(Arc::new(CommandTool {
            spec: spec.with_implementation(Digest::of([implementation.as_bytes()])).share(),
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

    /// Returns the command line of the tool.
    #[must_use]
    pub fn line(&self) -> CommandLine<'_> {
        CommandLine { words: &self.command, env: &self.env, folder: self.working_folder.as_deref() }
    }

    fn checked_bytes(&self) -> Result<u64, FieldError> {
        match self.max_bytes {
            None => Ok(DEFAULT_BYTES),
            Some(bytes @ 1..=MAX_BYTES) => Ok(bytes),
            Some(bytes) => Err(FieldError::new("/max_bytes", format!("must be between 1 and {MAX_BYTES}, got {bytes}"))),
        }
    }
}
