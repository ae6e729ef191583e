//! What is wrong with a project, for people: file, line, the line itself, and what would be right.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::yaml::Position;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It works, but perhaps not as meant.
    Warning,
    /// It does not work.
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

/// One thing that is wrong with a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file, from the project's folder.
    pub file: Option<Arc<str>>,
    /// The line, from one.
    pub line: Option<usize>,
    /// The character in the line, from one.
    pub column: Option<usize>,
    /// The field, as a JSON pointer.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
    /// The line as it stands in the file.
    #[serde(skip)]
    pub snippet: Option<String>,
}

impl Diagnostic {
    /// Something that is wrong with no file in particular.
    #[must_use]
    pub fn general(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, file: None, line: None, column: None, field: None, message: message.into(), hint: None, snippet: None }
    }

    /// Something that is wrong in a file as a whole.
    #[must_use]
    pub fn in_file(severity: Severity, file: &Arc<str>, message: impl Into<String>) -> Self {
        Self { file: Some(file.clone()), ..Self::general(severity, message) }
    }

    /// The same, with what would be right.
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
