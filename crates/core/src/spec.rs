//! The spec of a tool: name, description, schemas, rules.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::digest::Digest;
use crate::json::canonical;
use crate::rules::Rules;
use crate::schema::{Schema, SchemaError};

/// The spec of a tool: name, description, schemas and rules.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    name: Arc<str>,
    title: Option<String>,
    description: Arc<str>,
    input: Schema,
    output: Option<Schema>,
    rules: Rules,
    origin: Origin,
    implementation: Option<Digest>,
    hash: Digest,
}

/// Where a tool is defined, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The kind of tool.
    pub kind: ToolKind,
    /// The file or module that defines the tool.
    pub location: Option<Arc<str>>,
}

/// The kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// A Rust function or type.
    #[default]
    Builtin,
    /// An HTTP API described in a YAML file.
    Native,
    /// An executable.
    Command,
    /// A tool of an MCP server.
    Mcp,
    /// A tool of a physical device.
    Device,
    /// Another agent.
    Agent,
}

/// Why a spec is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The name is empty, too long, or contains white space, invisible or deceptive characters.
    #[error("`{name}` is not a valid tool name: a name has 1 to {} visible characters", ToolSpec::MAX_NAME)]
    Name {
        /// The name, escaped.
        name: String,
    },
    /// The description is too long.
    #[error("the description of `{name}` is longer than {} bytes", ToolSpec::MAX_DESCRIPTION)]
    Description {
        /// The name of the tool.
        name: String,
    },
    /// A schema is not valid.
    #[error("the {part} schema of `{name}` is not valid: {error}")]
    Schema {
        /// The name of the tool.
        name: String,
        /// Which schema: `input` or `output`.
        part: &'static str,
        /// Why the schema is not valid.
        error: SchemaError,
    },
    /// The input schema describes a value that is not an object.
    #[error("the input schema of `{name}` must describe an object: `\"type\": \"object\"`")]
    NotAnObject {
        /// The name of the tool.
        name: String,
    },
    /// There is already a tool of this name.
    #[error("a tool named `{name}` is already registered: rename one of them")]
    Duplicate {
        /// The name of both tools.
        name: String,
    },
}

impl ToolSpec {
    /// Maximum length of a name in bytes.
    pub const MAX_NAME: usize = 256;
    /// Maximum length of a description in bytes.
    pub const MAX_DESCRIPTION: usize = 64 << 10;

    /// Creates a spec with default rules.
    ///
    /// # Errors
    /// If the name, the description or the schema is not valid.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>, input: Schema) -> Result<Self, SpecError> {
        let (name, description) = (name.into(), description.into());
        check_name(&name)?;
        if description.len() > Self::MAX_DESCRIPTION {
            return Err(SpecError::Description { name: name.to_string() });
        }
        if !input.describes_object() {
            return Err(SpecError::NotAnObject { name: name.to_string() });
        }
        let spec = Self {
            name,
            title: None,
            description,
            input,
            output: None,
            rules: Rules::default(),
            origin: Origin::default(),
            implementation: None,
            hash: Digest::of([]),
        };
        Ok(spec.rehashed())
    }

    /// Sets the display name.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self.rehashed()
    }

    /// Sets the schema of results. Helve validates results against it.
    #[must_use]
    pub fn with_output(mut self, output: Schema) -> Self {
        self.output = Some(output);
        self.rehashed()
    }

    /// Sets the rules. The rules are not part of the hash.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets where the tool is defined. The origin is not part of the hash.
    #[must_use]
    pub fn with_origin(mut self, kind: ToolKind, location: impl Into<Arc<str>>) -> Self {
        self.origin = Origin { kind, location: Some(location.into()) };
        self
    }

    /// Sets the digest of the implementation, such as a command line or a URL. The digest is not part of the hash, but an approval is only
    /// valid for the implementation that was approved.
    #[must_use]
    pub fn with_implementation(mut self, implementation: Digest) -> Self {
        self.implementation = Some(implementation);
        self
    }

    /// Sets the name.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Result<Self, SpecError> {
        self.name = name.into();
        check_name(&self.name)?;
        Ok(self.rehashed())
    }

    /// Sets the description. A description that is too long is shortened in the middle.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.description = description.into();
        if self.description.len() > Self::MAX_DESCRIPTION {
            self.description = crate::printable::shorten(&self.description, Self::MAX_DESCRIPTION / 2).into();
        }
        self.rehashed()
    }

    /// Interns the spec, so that equal specs (for example of a thousand equal devices) share memory.
    #[must_use]
    pub fn share(self) -> Arc<Self> {
        static SHARED: LazyLock<Mutex<Interner>> = LazyLock::new(Mutex::default);
        SHARED.lock().share(self)
    }

    /// Returns the name of the tool in its source.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the display name.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the description for the model.
    #[must_use]
    pub fn description(&self) -> &Arc<str> {
        &self.description
    }

    /// Returns the JSON Schema of the arguments.
    #[must_use]
    pub fn input(&self) -> &Schema {
        &self.input
    }

    /// Returns the JSON Schema of the result, if the tool declares one.
    #[must_use]
    pub fn output(&self) -> Option<&Schema> {
        self.output.as_ref()
    }

    /// Returns the rules, which say how calls run.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns where the tool is defined.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the digest of the implementation, if that can change independently of the spec.
    #[must_use]
    pub fn implementation(&self) -> Option<Digest> {
        self.implementation
    }

    /// Returns the digest of name, title, description and schemas.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.hash
    }

    fn rehashed(mut self) -> Self {
        let title = canonical(&json!(self.title));
        let output = self.output.as_ref().map_or("", Schema::canonical);
        let parts = [&*self.name, &title, &self.description, self.input.canonical(), output];
        self.hash = Digest::of(parts.map(str::as_bytes));
        self
    }
}

fn check_name(name: &str) -> Result<(), SpecError> {
    let bad = |character: char| crate::printable::is_deceptive(character) || character.is_whitespace();
    if name.is_empty() || name.len() > ToolSpec::MAX_NAME || name.contains(bad) {
        let shown = crate::printable::shorten(&crate::printable::escape(name), 80);
        return Err(SpecError::Name { name: shown });
    }
    Ok(())
}

#[derive(Default)]
struct Interner {
    specs: HashMap<Digest, Weak<ToolSpec>>,
    sweep_at: usize,
}

impl Interner {
    fn share(&mut self, spec: ToolSpec) -> Arc<ToolSpec> {
        if let Some(known) = self.specs.get(&spec.hash).and_then(Weak::upgrade)
            && *known == spec
        {
            return known;
        }
        if self.specs.len() >= self.sweep_at {
            self.specs.retain(|_, spec| spec.strong_count() > 0);
            self.sweep_at = (self.specs.len() * 2).max(256);
        }
        let spec = Arc::new(spec);
        self.specs.insert(spec.hash, Arc::downgrade(&spec));
        spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str) -> Result<ToolSpec, SpecError> {
        ToolSpec::new(name, "Does it.", Schema::any_object())
    }

    #[test]
    fn names_that_deceive_are_refused() {
        for name in ["", "a b", "a\u{202e}b", "a\nb", &"x".repeat(257)] {
            assert!(matches!(spec(name), Err(SpecError::Name { .. })), "{name:?}");
        }
        assert!(spec("查询.天气/now").is_ok());
    }

    #[test]
    fn the_input_is_an_object() {
        let text = Schema::new(json!({"type": "string"})).expect("a schema");
        assert!(matches!(ToolSpec::new("x", "", text), Err(SpecError::NotAnObject { .. })));
    }

    #[test]
    fn equal_specs_are_kept_once_and_rules_keep_them_apart() {
        let shared = |rules: Rules| spec("same").map(|spec| spec.with_rules(rules).share()).expect("a spec");
        let one = shared(Rules::default());
        assert!(Arc::ptr_eq(&one, &shared(Rules::default())));
        let other = shared(Rules { retries: 1, ..Rules::default() });
        assert!(!Arc::ptr_eq(&one, &other));
        assert_eq!(one.hash(), other.hash());
    }

    #[test]
    fn the_hash_follows_what_the_tool_is() {
        let one = spec("a").expect("a spec");
        assert_ne!(one.hash(), spec("b").expect("a spec").hash());
        assert_ne!(one.hash(), one.clone().with_description("Does that.").hash());
        assert_ne!(one.hash(), one.clone().with_title("A").hash());
        assert_ne!(one.hash(), one.clone().with_output(Schema::any_object()).hash());
        assert_eq!(one.hash(), one.clone().with_origin(ToolKind::Mcp, "x").hash());
    }
}
