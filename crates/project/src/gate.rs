//! The gate that every value of a folder passes. Until a person trusts the folder, names, descriptions and rules that tighten get
//! through; tools get through as they are written, to be offered and not to be run; nothing else does, and `${NAME}` stays text.
//!
//! The table below lists what is known to be harmless. A field that it does not know is sealed, and counts.

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Severity};
use crate::discover::Kind;
use crate::environment;
use crate::file::ProjectFile;

/// Whether a person trusts the folder.
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
        | (
            Kind::Agent,
            "name" | "description" | "instructions" | "tools" | "tool_sets" | "subagents" | "output_strategy" | "limits",
        ) => Passage::Free,
        (Kind::Config, "permissions" | "limits") | (Kind::Agent, "permissions") => Passage::Tightening,
        (Kind::Command | Kind::Native | Kind::Mcp, _) => Passage::Offered,
        _ => Passage::Sealed,
    }
}

/// Whether models read what stands at this pointer. A variable there would put its value into a prompt, so none is expanded.
fn is_read_by_models(kind: Kind, pointer: &str) -> bool {
    let mut steps = pointer.split('/').skip(1);
    let field = steps.next().unwrap_or_default();
    match passage(kind, field) {
        Passage::Free | Passage::Tightening => true,
        Passage::Sealed => false,
        Passage::Offered => match field {
            "name" | "parameters" | "output" => true,
            // What is different about single tools of a server, by their names.
            "tools" => matches!(steps.nth(1), Some("name" | "description")),
            _ => false,
        },
    }
}

impl ProjectFile {
    /// What of the file gets through the gate, with its variables where that is open.
    ///
    /// # Errors
    /// The diagnostic of a variable that is not set, or of a reference that does not end.
    pub fn pass(&self, kind: Kind, gate: Gate) -> Result<Self, Box<Diagnostic>> {
        let expands = |pointer: &str| !is_read_by_models(kind, pointer);
        let mut passed = self.clone();
        let value_of = |name: &str| std::env::var(name).ok();
        let wrong = |error| Box::new(self.diagnose(Severity::Error, &error));
        match gate {
            Gate::Open => {
                let used = environment::expand(&mut passed.node, &expands, &value_of).map_err(wrong)?;
                passed.secrets = used.secrets;
            }
            Gate::Closed => {
                // Only whether a variable is set is looked at, so that a mistake shows before the folder is trusted.
                let is_set = |name: &str| value_of(name).filter(|value| !value.is_empty()).map(|_| "set".to_owned());
                environment::expand(&mut passed.node.clone(), &expands, &is_set).map_err(wrong)?;
                environment::expand(&mut passed.node, &|_| false, &|_| None).map_err(wrong)?;
                passed.node.retain_fields(|field| passage(kind, field) != Passage::Sealed);
            }
        }
        Ok(passed)
    }

    /// The variables that it reads once the gate is open.
    #[must_use]
    pub fn variables(&self, kind: Kind) -> Vec<String> {
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
        let Value::Object(fields) = self.node.value() else { return Vec::new() };
        fields.into_iter().map(|(field, _)| field).filter(|field| passage(kind, field) == Passage::Sealed).collect()
    }

    /// Texts for models with a variable in them, which stays as it is written.
    #[must_use]
    pub fn unexpanded(&self, kind: Kind) -> Vec<String> {
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
