//! The trust gate of project files: decides which fields take effect. If a file is not trusted, only names, descriptions and rules that
//! tighten permissions take effect. Its tools are listed but do not run, all other fields are ignored, and `${NAME}` is not expanded.
//!
//! The function [`access`] lists the fields that are known to be harmless. All other fields need trust.

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Severity};
use crate::discover::FileKind;
use crate::environment;
use crate::file::ProjectFile;

/// The state of the trust gate for a file. Settings, agents and tool sets are trusted together; each tool or server separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The file is not trusted, or has changed since it was trusted.
    Closed,
    /// The file is trusted with exactly its current contents.
    Open,
}

/// How a field is treated before its file is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldAccess {
    /// The field takes effect: a name, or text for models and people. Changing it does not require trusting the file again.
    Free,
    /// The field takes effect, because it can only restrict. Changing it requires trusting the file again.
    Tightening,
    /// The field is used unexpanded to list a tool that does not run yet. Changing it requires trusting the file again.
    Offered,
    /// The field is ignored until the file is trusted.
    Sealed,
}

fn access(kind: FileKind, field: &str) -> FieldAccess {
    match (kind, field) {
        (FileKind::Config, "agent")
        | (FileKind::Command | FileKind::Native | FileKind::Mcp, "title" | "description")
        | (FileKind::Set, "name" | "description" | "tools" | "tool_sets")
        | (FileKind::Agent, "name" | "description" | "instructions" | "tools" | "tool_sets" | "subagents" | "output_strategy") => {
            FieldAccess::Free
        }
        (FileKind::Config | FileKind::Agent, "permissions" | "limits") => FieldAccess::Tightening,
        (FileKind::Command | FileKind::Native | FileKind::Mcp, _) => FieldAccess::Offered,
        _ => FieldAccess::Sealed,
    }
}

/// Returns whether models read the value at this JSON pointer. Variables in such a value are not expanded, because prompts would contain
/// their values.
fn is_read_by_models(kind: FileKind, pointer: &str) -> bool {
    let field = pointer.split('/').nth(1).unwrap_or_default();
    match access(kind, field) {
        FieldAccess::Free | FieldAccess::Tightening => true,
        FieldAccess::Sealed => false,
        FieldAccess::Offered => match field {
            // `tools` overrides names, descriptions and default arguments of an MCP server's tools.
            "name" | "prefix" | "parameters" | "output" | "result" | "tools" => true,
            _ => false,
        },
    }
}

impl ProjectFile {
    /// Returns the file with the fields that the gate allows. Expands environment variables if the gate is open.
    ///
    /// # Errors
    /// Returns an error if a variable is not set, or a reference is not closed.
    pub fn pass(&self, kind: FileKind, gate: Gate) -> Result<Self, Box<Diagnostic>> {
        let mut passed = self.clone();
        let wrong = |error| Box::new(self.diagnose(Severity::Error, &error));
        match gate {
            Gate::Open => {
                let expands = |pointer: &str| !is_read_by_models(kind, pointer);
                let used = environment::expand(&mut passed.node, &expands, &|name| helve_core::environment::var(name)).map_err(wrong)?;
                passed.secrets = used.secrets;
            }
            Gate::Closed => {
                environment::expand(&mut passed.node, &|_| false, &|_| None).map_err(wrong)?;
                passed.node.retain_fields(|field| access(kind, field) != FieldAccess::Sealed);
            }
        }
        Ok(passed)
    }

    /// Returns the environment variables that are expanded when the file is trusted.
    #[must_use]
    pub fn variables(&self, kind: FileKind) -> Vec<String> {
        if !self.has_references {
            return Vec::new();
        }
        let expands = |pointer: &str| !is_read_by_models(kind, pointer);
        // `pass` reports a reference that is not closed.
        environment::expand(&mut self.node.clone(), &expands, &|_| Some("set".to_owned())).map(|used| used.variables).unwrap_or_default()
    }

    /// Returns the fields that trust covers: a change to one of them requires trusting the file again.
    #[must_use]
    pub fn counted(&self, kind: FileKind) -> Map<String, Value> {
        let Value::Object(mut fields) = self.node.value() else { return Map::new() };
        fields.retain(|field, _| access(kind, field) != FieldAccess::Free);
        fields
    }

    /// Returns the names of the fields that are ignored until the file is trusted.
    #[must_use]
    pub fn sealed(&self, kind: FileKind) -> Vec<String> {
        self.node.keys().filter(|field| access(kind, field) == FieldAccess::Sealed).map(ToOwned::to_owned).collect()
    }

    /// Returns JSON pointers to texts for models that contain a reference to a variable. Such references are not expanded.
    #[must_use]
    pub fn unexpanded(&self, kind: FileKind) -> Vec<String> {
        if !self.has_references {
            return Vec::new();
        }
        let mut pointers = Vec::new();
        let _: Result<(), ()> = self.node.clone().rewrite(&mut |pointer, text| {
            if is_read_by_models(kind, pointer) && environment::has_variable(text) {
                pointers.push(pointer.to_owned());
            }
            Ok(None)
        });
        pointers
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG: &str = "model: m\nmodels: {}\nagent: a\nsources: []\npermissions: []\napprovals: {}\nstore: s\nlisten: l\npublic_url: p\n\
        allowed_hosts: []\ndevices: []\nlimits: {}\nsomething_new: x\n";

    fn file(text: &str) -> ProjectFile {
        ProjectFile::parse(&"x.yaml".into(), text).expect("YAML")
    }

    fn fields(value: &Value) -> Vec<String> {
        value.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
    }

    #[test]
    fn what_the_table_does_not_know_is_sealed() {
        let closed = file(CONFIG).pass(FileKind::Config, Gate::Closed).expect("passed");
        assert_eq!(fields(&closed.value()), ["agent", "permissions", "limits"]);
        let agent = "name: a\ninstructions: x\nmodel: m\non_result: run\npermissions: {}\nlimits: {}\nsomething_new: x\n";
        let closed = file(agent).pass(FileKind::Agent, Gate::Closed).expect("passed");
        assert_eq!(fields(&closed.value()), ["name", "instructions", "permissions", "limits"]);
        assert_eq!(file(agent).sealed(FileKind::Agent), ["model", "on_result", "something_new"]);
        assert_eq!(file("name: s\nsomething_new: x\n").sealed(FileKind::Set), ["something_new"]);
    }

    /// "Nothing to trust" is a proof: if no field needs trust, an open and a closed gate let the same through.
    #[test]
    fn where_nothing_counts_both_gates_are_the_same() {
        let texts = ["", "${HOME}", "$${HOME}", "${NOT_SET_ANYWHERE}", "words"];
        for kind in [FileKind::Config, FileKind::Command, FileKind::Native, FileKind::Mcp, FileKind::Set, FileKind::Agent] {
            for field in
                ["name", "title", "description", "instructions", "agent", "tools", "tool_sets", "subagents", "model", "limits", "command"]
            {
                for text in texts {
                    let file = file(&format!("{field}: {}\n", json!(text)));
                    if file.counted(kind).is_empty() {
                        let passed = |gate| file.pass(kind, gate).map(|file| file.value()).map_err(|error| error.message);
                        assert_eq!(passed(Gate::Closed), passed(Gate::Open), "{kind:?} {field} {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn variables_are_expanded_behind_an_open_gate_and_never_for_models() {
        let text = "name: t\ndescription: ${HOME}\ncommand: [x, '${HOME}']\nparameters: [{name: a, description: '${HOME}'}]\n";
        let home = std::env::var("HOME").expect("a home");
        let value = |gate| file(text).pass(FileKind::Command, gate).expect("passed").value();
        let offered = |command: &str| json!({"name": "t", "description": "${HOME}", "command": ["x", command], "parameters": [{"name": "a", "description": "${HOME}"}]});
        assert_eq!((value(Gate::Closed), value(Gate::Open)), (offered("${HOME}"), offered(&home)));
        assert_eq!(file(text).variables(FileKind::Command), ["HOME"]);
        assert_eq!(file(text).unexpanded(FileKind::Command), ["/description", "/parameters/0/description"]);
        let server = "name: m\ntools: {a: {description: '${HOME}', arguments: {key: '${HOME}'}}}\n";
        let passed = file(server).pass(FileKind::Mcp, Gate::Open).expect("passed").value();
        assert_eq!(passed["tools"]["a"], json!({"description": "${HOME}", "arguments": {"key": "${HOME}"}}));
    }
}
