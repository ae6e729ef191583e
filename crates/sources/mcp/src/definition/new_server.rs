//! Writes the definition file of a new server into `tools/mcp`.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::json;

/// A server to add to a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewServer {
    /// The name of the server, which is also the name of its file.
    pub name: String,
    /// The program and its arguments; empty for a server with a URL.
    pub command: Vec<String>,
    /// The URL; `None` for a program.
    pub url: Option<String>,
    /// HTTP headers of every request, as names and values.
    pub headers: Vec<(String, String)>,
    /// Environment variables of the program: `NAME`, or `NAME=value`.
    pub env: Vec<String>,
    /// The prefix of the tool names; `None` for the name of the server.
    pub prefix: Option<String>,
    /// Whether to trust the server's annotations of its tools.
    pub trusted: bool,
}

impl NewServer {
    /// Returns the content of the definition file. Writes values as JSON, which is valid YAML.
    #[must_use]
    pub fn yaml(&self) -> String {
        let mut text = format!("name: {}\n", json!(self.name));
        let mut field = |name: &str, value: serde_json::Value| text.extend([name, ": ", &value.to_string(), "\n"]);
        if let Some(url) = &self.url {
            field("url", json!(url));
        } else {
            field("command", json!(self.command));
        }
        if !self.env.is_empty() {
            field("env", json!(self.env));
        }
        if !self.headers.is_empty() {
            field("headers", self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect());
        }
        if let Some(prefix) = &self.prefix {
            field("prefix", json!(prefix));
        }
        if self.trusted {
            field("trusted", json!(true));
        }
        text
    }

    /// Writes the definition file into a project, and returns its path relative to the project. Never overwrites a file.
    ///
    /// # Errors
    /// Returns an error if the name is invalid, or if the file exists or cannot be written.
    pub fn write(&self, project: &Path) -> Result<String, String> {
        let fits = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(fits) || self.name.starts_with('.') {
            let name = helve_core::printable::escape_line(&self.name);
            return Err(format!("`{name}` is not a valid server name; use letters, digits, `_`, `-` and `.`"));
        }
        let path = format!("tools/mcp/{}.yaml", self.name);
        let whole = project.join(&path);
        let written = whole.parent().map_or(Ok(()), |folder| make_inside(project, folder)).and_then(|()| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&whole)?;
            file.write_all(self.yaml().as_bytes())
        });
        match written {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(format!("{path} already exists")),
            Err(error) => Err(format!("{path} cannot be written: {error}")),
        }
    }
}

/// Creates a folder in the project. Fails, without creating anything, if a symbolic link leads out of the project.
fn make_inside(project: &Path, folder: &Path) -> std::io::Result<()> {
    let project = project.canonicalize()?;
    let check = |folder: &Path| match folder.canonicalize() {
        Ok(real) if real.starts_with(&project) => Ok(()),
        Ok(_) => Err(std::io::Error::other("it is outside of the project")),
        Err(error) => Err(error),
    };
    folder.ancestors().find(|folder| folder.exists()).map_or(Ok(()), check)?;
    fs::create_dir_all(folder)?;
    check(folder)
}
