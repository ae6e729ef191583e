//! Diagnostics: errors and warnings about a project, with their position and a hint.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::yaml::Position;

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The project works, but perhaps not as intended.
    Warning,
    /// Part of the project does not work.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// An error or warning about a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Whether the diagnostic is an error or a warning.
    pub severity: Severity,
    /// The file, relative to the project folder.
    pub file: Option<Arc<str>>,
    /// Line number, starting at 1.
    pub line: Option<usize>,
    /// Column number in characters, starting at 1.
    pub column: Option<usize>,
    /// JSON pointer to the field.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// How to fix the problem.
    pub hint: Option<String>,
    /// The line of the file that contains the problem.
    #[serde(skip)]
    pub snippet: Option<String>,
}

impl Diagnostic {
    /// Creates a diagnostic that belongs to no file.
    #[must_use]
    pub fn general(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, file: None, line: None, column: None, field: None, message: message.into(), hint: None, snippet: None }
    }

    /// Creates a diagnostic about a file as a whole.
    #[must_use]
    pub fn in_file(severity: Severity, file: &Arc<str>, message: impl Into<String>) -> Self {
        Self { file: Some(file.clone()), ..Self::general(severity, message) }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(mut self, position: Position, text: &str) -> Self {
        self.line = Some(position.line);
        self.column = Some(position.column);
        let line = text.lines().nth(position.line - 1).map(str::trim_end).filter(|line| !line.trim().is_empty());
        self.snippet = line.map(|line| helve_core::printable::shorten(&helve_core::printable::escape_line(line), 160));
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.severity)?;
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            self.line.iter().try_for_each(|line| write!(f, "{line}:"))?;
            write!(f, " ")?;
        }
        write!(f, "{}", self.message)?;
        if let (Some(snippet), Some(line)) = (&self.snippet, self.line) {
            write!(f, "\n  {line} | {snippet}")?;
        }
        self.hint.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}
