//! A server that is written down for a person: what they typed becomes a file in `tools/mcp`.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::json;

/// A server that is not in the project yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewServer {
    /// Its name.
    pub name: String,
    /// The program and its arguments; empty where there is an address.
    pub command: Vec<String>,
    /// The address.
    pub url: Option<String>,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// Variables of the program, as in a file.
    pub env: Vec<String>,
    /// What the names of its tools begin with, if that is not its name.
    pub prefix: Option<String>,
    /// Whether it is believed.
    pub trusted: bool,
}

impl NewServer {
    /// The file that describes it. JSON texts and lists are YAML as well, whatever is in them.
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

    /// Writes the file into a project, and gives its path from there. Nothing that is there is overwritten.
    ///
    /// # Errors
    /// A sentence, where the name cannot be that of a file, or the file cannot be made.
    pub fn write(&self, project: &Path) -> Result<String, String> {
        let fits = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(fits) || self.name.starts_with('.') {
            let name = helve_core::printable::escape_line(&self.name);
            return Err(format!("`{name}` cannot be the name of a server: letters, digits, `_`, `-` and `.` make one"));
        }
        let path = format!("tools/mcp/{}.yaml", self.name);
        let whole = project.join(&path);
        let written = whole.parent().map_or(Ok(()), |folder| make_inside(project, folder)).and_then(|()| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&whole)?;
            file.write_all(self.yaml().as_bytes())
        });
        match written {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(format!("{path} is there already, and is not overwritten"))
            }
            Err(error) => Err(format!("{path} cannot be written: {error}")),
        }
    }
}

/// Makes a folder of the project. No link may lead out of it, and nothing is made elsewhere before that is known.
fn make_inside(project: &Path, folder: &Path) -> std::io::Result<()> {
    let project = project.canonicalize()?;
    let check = |folder: &Path| match folder.canonicalize() {
        Ok(real) if real.starts_with(&project) => Ok(()),
        Ok(_) => Err(std::io::Error::other("it lies outside the project")),
        Err(error) => Err(error),
    };
    folder.ancestors().find(|folder| folder.exists()).map_or(Ok(()), check)?;
    fs::create_dir_all(folder)?;
    check(folder)
}
