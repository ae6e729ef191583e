//! Converts an operation to a tool definition.

use helve_core::authored::RulesFields;
use helve_core::{Permission, Schema};
use serde_json::Value;

use super::arguments::Arguments;
use super::document::{Document, Operation};
use super::schema::{Converter, Patterns};
use super::text::{at_sentence, clean, joined};
use super::{Obstacle, body, parameters, servers};
use crate::definition::{HttpDefinition, OpenApiDefinition};

/// Approximate maximum length of a description in characters. A description is cut at the end of a sentence.
const MAX_DESCRIPTION: usize = 1_000;
/// Maximum length of a title in characters.
const MAX_TITLE: usize = 120;

/// A converter of operations to tool definitions.
pub(super) struct Importer<'a, 'd> {
    definition: &'a OpenApiDefinition,
    document: &'a Document<'d>,
    patterns: Patterns,
}

impl<'a, 'd> Importer<'a, 'd> {
    pub fn new(definition: &'a OpenApiDefinition, document: &'a Document<'d>, patterns: Patterns) -> Self {
        Self { definition, document, patterns }
    }

    /// Creates the definition of the tool for an operation. Also returns notes on how the tool differs from the document.
    pub fn tool(&mut self, operation: &Operation<'d>, name: &str) -> Result<(HttpDefinition, Vec<String>), Obstacle> {
        match self.attempt(operation, name, true) {
            Err(Obstacle::TooLarge) => self.attempt(operation, name, false),
            done => done,
        }
    }

    fn attempt(&mut self, operation: &Operation<'d>, name: &str, inline: bool) -> Result<(HttpDefinition, Vec<String>), Obstacle> {
        let definition = self.definition;
        let Some(method) = operation.method else {
            return Err(format!("{} requests are not supported", operation.verb).into());
        };
        let mut converter = Converter::new(self.document, &mut self.patterns, inline);
        let mut arguments = Arguments::default();
        let templates = parameters::place(definition, self.document, operation, &mut converter, &mut arguments)?;
        let body = body::place(self.document, operation, &mut converter, &mut arguments)?;
        let path = servers::with_templates(operation.path, &templates.path)?;
        let definitions = converter.definitions(arguments.schemas());
        let parameters = arguments.schema(definitions);
        Schema::new(parameters.clone()).map_err(|error| format!("its input schema is not supported: {error}"))?;
        // Check the URL last, because a missing URL matters only if the operation can be converted.
        let base = servers::base(definition.api_url.as_deref(), self.document, operation)?;
        let mut headers = definition.headers.clone();
        headers.extend(templates.headers);
        if let Some(kind) = body.content_type
            && !headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"))
        {
            headers.insert("Content-Type".into(), kind);
        }
        let (title, description) = describe(operation);
        let tool = HttpDefinition {
            name: prefixed(definition.selection.prefix.as_deref(), name),
            title,
            description,
            api_url: base + &path,
            method,
            auth_method: definition.auth_method.clone(),
            parameters: Some(parameters),
            query: templates.query,
            headers,
            body: body.value,
            body_format: body.format,
            result: None,
            output: None,
            max_bytes: definition.max_bytes,
            retry_on: Vec::new(),
            rules: rules(&definition.rules, operation.reads()),
        };
        Ok((tool, templates.notes.into_iter().chain(body.note).collect()))
    }
}

fn prefixed(prefix: Option<&str>, name: &str) -> String {
    match prefix {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}_{name}"),
        _ => name.to_owned(),
    }
}

fn describe(operation: &Operation<'_>) -> (Option<String>, String) {
    let text = |field: &str, limit: usize| {
        let text = operation.fields.get(field).or_else(|| operation.shared.get(field)).and_then(Value::as_str);
        clean(text.unwrap_or_default(), limit)
    };
    let title = text("summary", MAX_TITLE);
    let described = joined(&text("summary", MAX_DESCRIPTION), &text("description", MAX_DESCRIPTION));
    let described =
        if described.is_empty() { clean(&format!("{} {}", operation.verb, operation.path), MAX_DESCRIPTION) } else { described };
    (Some(title).filter(|title| !title.is_empty()), at_sentence(&described, MAX_DESCRIPTION))
}

/// Returns the rules of a tool. By default, read-only requests need no approval and are idempotent; all others need approval and are not
/// cached.
fn rules(given: &RulesFields, reads: bool) -> RulesFields {
    let mut rules = given.clone();
    rules.permission = Some(given.permission.unwrap_or(if reads { Permission::Auto } else { Permission::Confirm }));
    if !reads && !given.idempotent {
        rules.cache = None;
    }
    rules.idempotent |= reads;
    rules
}
