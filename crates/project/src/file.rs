//! Reads a YAML file of a project, deserialises it, and reports errors with their positions.

use std::any::TypeId;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use helve_core::authored::FieldError;
use helve_core::{Problem, Redactor, Schema};
use parking_lot::Mutex;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::diagnostic::{Diagnostic, Severity};
use crate::yaml::{self, Node};

/// A YAML file of a project, before it is known whether a person trusts it. [`ProjectFile::pass`] returns the fields that may be used.
#[derive(Debug, Clone)]
pub struct ProjectFile {
    path: Arc<str>,
    text: Arc<str>,
    pub(crate) node: Node,
    /// Whether any string contains `${`.
    pub(crate) has_references: bool,
    pub(crate) secrets: Vec<(String, SecretString)>,
}

impl ProjectFile {
    /// Reads and parses a file. `path` is relative to the project folder `root`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not valid YAML.
    pub fn open(root: &Path, path: &Arc<str>) -> Result<Self, Box<Diagnostic>> {
        let text = read_inside(root, &root.join(&**path), yaml::MAX_BYTES as u64)
            .map_err(|error| Box::new(Diagnostic::in_file(Severity::Error, path, format!("cannot read file: {error}"))))?;
        let text =
            String::from_utf8(text).map_err(|_| Box::new(Diagnostic::in_file(Severity::Error, path, "the file is not valid UTF-8")))?;
        Self::parse(path, &text)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Returns an error if the text is not valid YAML.
    pub fn parse(path: &Arc<str>, text: &str) -> Result<Self, Box<Diagnostic>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let node = yaml::read(text).map_err(|error| {
            let diagnostic = Diagnostic::in_file(Severity::Error, path, &error.message).at(error.position, text);
            Box::new(Diagnostic { hint: error.hint, ..diagnostic })
        })?;
        let has_references = node.any_text(&|text| text.contains("${"));
        Ok(Self { path: path.clone(), text: text.into(), node, has_references, secrets: Vec::new() })
    }

    /// Returns the path relative to the project folder.
    #[must_use]
    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds secrets from expanded environment variables to a redactor.
    pub fn teach(&self, redactor: &Redactor) {
        for (variable, secret) in &self.secrets {
            redactor.add_from(&format!("env:{variable}"), [secret.clone()]);
        }
    }

    /// Returns whether the file has a top-level field.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.node.has(field)
    }

    /// Returns the content as JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        self.node.value()
    }

    /// Deserialises the content as a `T`. Checks it against the JSON Schema of `T` first, because schema errors have positions.
    ///
    /// # Errors
    /// Returns a diagnostic of the first error.
    pub fn read<T: DeserializeOwned + JsonSchema + 'static>(&self) -> Result<T, Box<Diagnostic>> {
        let value = self.node.value();
        let problems = schema_of::<T>().check(&value);
        let is_vague = |problem: &Problem| problem.expected.contains("allowed forms");
        // For a field that allows several forms, serde's message is better, because serde knows which form was meant.
        // Report a misspelled field before a missing one, because it is often the cause.
        let clear = problems.iter().filter(|problem| !is_vague(problem));
        if let Some(problem) = clear.clone().find(|problem| problem.hint.is_some()).or_else(|| clear.clone().next()) {
            return Err(Box::new(self.diagnose(Severity::Error, &in_words(problem))));
        }
        serde_path_to_error::deserialize(value).map_err(|error| {
            let nearest = problems.first().map(|problem| problem.path.clone());
            let path = format!("/{}", error.path().to_string().replace(['.', '['], "/").replace(']', ""));
            let path = if path == "/" || path == "//" { nearest.unwrap_or_default() } else { path };
            let message = match field_name(&path) {
                field if field.is_empty() => error.into_inner().to_string(),
                field => format!("invalid value for `{field}`: {}", error.into_inner()),
            };
            Box::new(self.diagnose(Severity::Error, &FieldError::new(path, message)))
        })
    }

    /// Creates a diagnostic from an error in a field.
    #[must_use]
    pub fn diagnose(&self, severity: Severity, error: &FieldError) -> Diagnostic {
        let diagnostic = Diagnostic::in_file(severity, &self.path, &error.message).at(self.node.locate(&error.path), &self.text);
        let field = Some(error.path.clone()).filter(|path| !path.is_empty());
        Diagnostic { hint: error.hint.clone(), field, ..diagnostic }
    }
}

/// Reads a regular file inside the folder `root`, which must be a canonical path.
///
/// # Errors
/// Returns an error if the file cannot be read, is outside the folder (also through a symbolic link), is not a regular file (a pipe or
/// device could block), or is larger than `most` bytes.
pub fn read_inside(root: &Path, path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    use std::io::{Error, Read};
    let path = path.canonicalize()?;
    if !path.starts_with(root) {
        return Err(Error::other("the file is outside the project folder"));
    }
    if !std::fs::metadata(&path)?.is_file() {
        return Err(Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Error::other(format!("the file is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Returns the JSON Schema of a type, and compiles it only once.
fn schema_of<T: JsonSchema + 'static>() -> Schema {
    static SCHEMAS: LazyLock<Mutex<HashMap<TypeId, Schema>>> = LazyLock::new(Mutex::default);
    SCHEMAS.lock().entry(TypeId::of::<T>()).or_insert_with(Schema::of::<T>).clone()
}

/// Converts a schema violation to an error about a field.
fn in_words(problem: &Problem) -> FieldError {
    let field = field_name(&problem.path);
    let is_unknown = problem.got == "an unknown argument";
    let message = match problem.got.as_str() {
        "nothing" => format!("missing field `{field}`"),
        _ if is_unknown => format!("unknown field `{field}`"),
        got if field.is_empty() => format!("invalid file: expected {}, got {got}", problem.expected),
        got => format!("invalid value for `{field}`: expected {}, got {got}", problem.expected),
    };
    let known = || problem.expected.strip_prefix("only ").filter(|_| is_unknown).map(|names| format!("known fields: {names}"));
    FieldError { path: problem.path.clone(), message, hint: problem.hint.clone().or_else(known) }
}

/// Converts a JSON pointer to a dotted name, such as `models.house.price`.
fn field_name(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

#[cfg(test)]
mod tests {
    use helve_core::authored::RulesFields;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only reading is tested")]
    struct Thing {
        name: String,
        size: Option<u8>,
        shape: Option<Shape>,
        inner: Option<Inner>,
        #[serde(flatten)]
        rules: RulesFields,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading is tested")]
    struct Inner {
        depth: u8,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading is tested")]
    enum Shape {
        Round { radius: f64 },
        Square { side: f64 },
    }

    fn read(text: &str) -> Result<Thing, String> {
        let file = ProjectFile::parse(&"tools/x.yaml".into(), text).map_err(|diagnostic| diagnostic.to_string())?;
        file.read::<Thing>().map_err(|diagnostic| diagnostic.to_string())
    }

    #[test]
    fn a_file_that_is_right_is_read() {
        let thing = read("name: x\nsize: 3\nshape: {type: round, radius: 1}\ntimeout: 5s\n").expect("a thing");
        assert_eq!(thing.rules.timeout.map(|timeout| timeout.0.as_secs()), Some(5));
    }

    #[test]
    fn each_mistake_has_its_line_and_a_hint() {
        for (text, expected) in [
            ("size: 3\n", "error: tools/x.yaml:1: missing field `name`\n  1 | size: 3"),
            ("name: x\nsise: 3\n", "error: tools/x.yaml:2: unknown field `sise`\n  2 | sise: 3\n  hint: did you mean `size`?"),
            (
                "name: x\nsize: big\n",
                "error: tools/x.yaml:2: invalid value for `size`: expected integer, got string \"big\"\n  2 | size: big",
            ),
            (
                "name: x\nsize: 300\n",
                "error: tools/x.yaml:2: invalid value for `size`: expected 255 or less, got integer 300\n  2 | size: 300",
            ),
            (
                "name: x\ntimeout: soon\n",
                "error: tools/x.yaml:2: invalid value for `timeout`: expected text such as `30s`, `5m`, `1h`, got string \"soon\"",
            ),
            (
                "name: x\ninner: {dept: 1}\n",
                "error: tools/x.yaml:2: unknown field `inner.dept`\n  2 | inner: {dept: 1}\n  hint: did you mean `depth`?",
            ),
            ("- a\n", "error: tools/x.yaml:1: invalid file: expected object, got array of 1 items"),
            (
                "name: x\nshape: {type: roud, radius: 1}\n",
                "error: tools/x.yaml:2: invalid value for `shape.type`: unknown variant `roud`, expected `round` or `square`",
            ),
            (
                "name: x\nshape: {type: round, radius: far}\n",
                "error: tools/x.yaml:2: invalid value for `shape`: invalid type: string \"far\"",
            ),
        ] {
            let error = read(text).expect_err("a mistake");
            assert!(error.starts_with(expected), "{text:?}:\n{error}");
        }
    }
}
