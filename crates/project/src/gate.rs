//! The gate that every value of a folder passes. Until a person trusts the folder, names, descriptions and rules that tighten get
//! through; tools get through as they are written, to be offered and not to be run; nothing else does, and `${NAME}` stays text.
//!
//! The table below lists what is known to be harmless. A field that it does not know is sealed, and counts.

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Severity};
use crate::discover::Kind;
use crate::environment;
use crate::file::ProjectFile;

/// Whether a person agreed to what a file says. Settings, agents and sets pass together; a tool or a server passes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Not, or not with what it says now.
    Closed,
    /// Yes, with exactly this.
    Open,
}

/// What becomes of a field at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    /// Names, and text for models and people: passes, and may change without a new question.
    Free,
    /// Can only take away: passes, and counts.
    Tightening,
    /// Describes a tool: passes as it is written, and counts.
    Offered,
    /// Waits for trust, and counts.
    Sealed,
}

fn passage(kind: Kind, field: &str) -> Passage {
    match (kind, field) {
        (Kind::Config, "agent")
        | (Kind::Command | Kind::Native | Kind::Mcp, "title" | "description")
        | (Kind::Set, "name" | "description" | "tools" | "tool_sets")
        | (Kind::Agent, "name" | "description" | "instructions" | "tools" | "tool_sets" | "subagents" | "output_strategy") => Passage::Free,
        (Kind::Config | Kind::Agent, "permissions" | "limits") => Passage::Tightening,
        (Kind::Command | Kind::Native | Kind::Mcp, _) => Passage::Offered,
        _ => Passage::Sealed,
    }
}

/// Whether models read what stands at this pointer. A variable there would put its value into a prompt, so none is expanded.
fn is_read_by_models(kind: Kind, pointer: &str) -> bool {
    let field = pointer.split('/').nth(1).unwrap_or_default();
    match passage(kind, field) {
        Passage::Free | Passage::Tightening => true,
        Passage::Sealed => false,
        Passage::Offered => match field {
            // `tools` says what is different about single tools of a server: their names, descriptions and defaults.
            "name" | "prefix" | "parameters" | "output" | "result" | "tools" => true,
            _ => false,
        },
    }
}

impl ProjectFile {
    /// What of the file gets through the gate, with its variables where that is open.
    ///
    /// # Errors
    /// Behind an open gate, the diagnostic of a variable that is not set, or of a reference that does not end.
    pub fn pass(&self, kind: Kind, gate: Gate) -> Result<Self, Box<Diagnostic>> {
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
                passed.node.retain_fields(|field| passage(kind, field) != Passage::Sealed);
            }
        }
        Ok(passed)
    }

    /// The variables that it reads once the gate is open.
    #[must_use]
    pub fn variables(&self, kind: Kind) -> Vec<String> {
        if !self.has_references {
            return Vec::new();
        }
        let expands = |pointer: &str| !is_read_by_models(kind, pointer);
        // A reference that does not end is reported when the file passes the gate.
        environment::expand(&mut self.node.clone(), &expands, &|_| Some("set".to_owned())).map(|used| used.variables).unwrap_or_default()
    }

    /// Everything in it that a person must agree to.
    #[must_use]
    pub fn counted(&self, kind: Kind) -> Map<String, Value> {
        let Value::Object(mut fields) = self.node.value() else { return Map::new() };
        fields.retain(|field, _| passage(kind, field) != Passage::Free);
        fields
    }

    /// The fields that do not get through a closed gate.
    #[must_use]
    pub fn sealed(&self, kind: Kind) -> Vec<String> {
        self.node.keys().filter(|field| passage(kind, field) == Passage::Sealed).map(ToOwned::to_owned).collect()
    }

    /// Texts for models with a variable in them, which stays as it is written.
    #[must_use]
    pub fn unexpanded(&self, kind: Kind) -> Vec<String> {
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
        let closed = file(CONFIG).pass(Kind::Config, Gate::Closed).expect("passed");
        assert_eq!(fields(&closed.value()), ["agent", "permissions", "limits"]);
        let agent = "name: a\ninstructions: x\nmodel: m\non_result: run\npermissions: {}\nlimits: {}\nsomething_new: x\n";
        let closed = file(agent).pass(Kind::Agent, Gate::Closed).expect("passed");
        assert_eq!(fields(&closed.value()), ["name", "instructions", "permissions", "limits"]);
        assert_eq!(file(agent).sealed(Kind::Agent), ["model", "on_result", "something_new"]);
        assert_eq!(file("name: s\nsomething_new: x\n").sealed(Kind::Set), ["something_new"]);
    }

    /// "Nothing to trust" is a proof: where nothing counts, both gates let the same through.
    #[test]
    fn where_nothing_counts_both_gates_are_the_same() {
        let texts = ["", "${HOME}", "$${HOME}", "${NOT_SET_ANYWHERE}", "words"];
        for kind in [Kind::Config, Kind::Command, Kind::Native, Kind::Mcp, Kind::Set, Kind::Agent] {
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
        let value = |gate| file(text).pass(Kind::Command, gate).expect("passed").value();
        let offered = |command: &str| json!({"name": "t", "description": "${HOME}", "command": ["x", command], "parameters": [{"name": "a", "description": "${HOME}"}]});
        assert_eq!((value(Gate::Closed), value(Gate::Open)), (offered("${HOME}"), offered(&home)));
        assert_eq!(file(text).variables(Kind::Command), ["HOME"]);
        assert_eq!(file(text).unexpanded(Kind::Command), ["/description", "/parameters/0/description"]);
        let server = "name: m\ntools: {a: {description: '${HOME}', arguments: {key: '${HOME}'}}}\n";
        let passed = file(server).pass(Kind::Mcp, Gate::Open).expect("passed").value();
        assert_eq!(passed["tools"]["a"], json!({"description": "${HOME}", "arguments": {"key": "${HOME}"}}));
    }
}
