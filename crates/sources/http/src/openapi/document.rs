//! The document as a whole: which version it is, what its references mean, and which operations it has.

use helve_core::authored::FieldError;
use helve_core::printable::{escape, shorten};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::Skipped;
use crate::definition::Method;

/// References followed in a row; longer chains are not written by people.
const MAX_HOPS: usize = 16;
/// Operations of one document, imported or not. The largest public documents have about a thousand.
const MAX_OPERATIONS: usize = 20_000;

/// The methods of a path, and what they are for tools.
const METHODS: [(&str, &str, Option<Method>); 8] = [
    ("get", "GET", Some(Method::Get)),
    ("head", "HEAD", Some(Method::Head)),
    ("post", "POST", Some(Method::Post)),
    ("put", "PUT", Some(Method::Put)),
    ("patch", "PATCH", Some(Method::Patch)),
    ("delete", "DELETE", Some(Method::Delete)),
    ("options", "OPTIONS", None),
    ("trace", "TRACE", None),
];

/// An OpenAPI 3 document.
pub(super) struct Document<'d> {
    root: &'d Value,
    paths: &'d Map<String, Value>,
}

/// One operation of a document.
pub(super) struct Operation<'d> {
    /// The method as it is written in requests.
    pub verb: &'static str,
    /// The method, where tools can have it.
    pub method: Option<Method>,
    pub path: &'d str,
    pub id: Option<&'d str>,
    pub fields: &'d Map<String, Value>,
    /// What all operations of the path share.
    pub shared: &'d Map<String, Value>,
}

/// The operations of a document, and the paths that have none that can be read.
pub(super) struct Listed<'d> {
    pub operations: Vec<Operation<'d>>,
    pub unreadable: Vec<Skipped>,
}

impl<'d> Document<'d> {
    /// Takes a document, if it is one.
    pub fn new(root: &'d Value) -> Result<Self, FieldError> {
        let wrong = |message: &str, hint: &str| Err(FieldError::new("/openapi", message).hint(hint));
        if root.get("swagger").is_some() {
            return wrong("this is a Swagger 2.0 document; OpenAPI 3 is needed", "convert it first, for example with `swagger2openapi`");
        }
        // YAML reads `openapi: 3.1` as a number.
        let version = match root.get("openapi") {
            Some(Value::String(version)) => version.clone(),
            Some(Value::Number(version)) => version.to_string(),
            _ => return wrong("this is not an OpenAPI document", "it begins with `openapi: 3.0.3` or `openapi: 3.1.0`"),
        };
        if version != "3" && !version.starts_with("3.") {
            let message = format!("OpenAPI {} cannot be read", shown(&version));
            return wrong(&message, "versions 3.0 and 3.1 can");
        }
        match root.get("paths") {
            Some(Value::Object(paths)) => Ok(Self { root, paths }),
            _ => wrong("the document has no `paths`, so it has no operations", "give the document that describes the operations"),
        }
    }

    /// A field of the document itself.
    pub fn field(&self, name: &str) -> Option<&'d Value> {
        self.root.get(name)
    }

    /// Every operation, in the order of the document.
    pub fn operations(&self) -> Result<Listed<'d>, FieldError> {
        let mut listed = Listed { operations: Vec::new(), unreadable: Vec::new() };
        for (path, item) in self.paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
            let shared = self.follow(item).and_then(|item| item.as_object().ok_or_else(|| "the path has no operations".to_owned()));
            let shared = match shared {
                Ok(shared) => shared,
                Err(reason) => {
                    listed.unreadable.push(Skipped { operation: shown(path), reason });
                    continue;
                }
            };
            for (key, value) in shared {
                let Some((_, verb, method)) = METHODS.iter().find(|(name, ..)| name == key) else { continue };
                let Some(fields) = value.as_object() else {
                    let operation = shown(&format!("{verb} {path}"));
                    listed.unreadable.push(Skipped { operation, reason: "it is not described by a map".into() });
                    continue;
                };
                let id = fields.get("operationId").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
                listed.operations.push(Operation { verb, method: *method, path, id, fields, shared });
            }
            if listed.operations.len() > MAX_OPERATIONS {
                return Err(FieldError::new("/openapi", format!("the document has more than {MAX_OPERATIONS} operations")));
            }
        }
        Ok(listed)
    }

    /// What a value means: itself, or what it refers to.
    pub fn follow(&self, value: &'d Value) -> Result<&'d Value, String> {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            match value.get("$ref").and_then(Value::as_str) {
                Some(reference) => value = self.target(reference)?,
                None => return Ok(value),
            }
        }
        Err("its references lead in a circle".into())
    }

    /// What a reference points to.
    pub fn target(&self, reference: &str) -> Result<&'d Value, String> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(format!("it refers to `{}`, which is outside the document; bundle the document first", shown(reference)));
        };
        let pointer = percent_decode_str(fragment).decode_utf8_lossy();
        self.root.pointer(&pointer).ok_or_else(|| format!("it refers to `{}`, which is not in the document", shown(reference)))
    }
}

impl Operation<'_> {
    /// How people find it in the document.
    pub fn label(&self) -> String {
        self.id.map_or_else(|| shown(&format!("{} {}", self.verb, self.path)), shown)
    }

    pub fn is_deprecated(&self) -> bool {
        self.fields.get("deprecated") == Some(&Value::Bool(true))
    }

    /// The tags it has.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.fields.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether it only reads.
    pub fn reads(&self) -> bool {
        matches!(self.method, Some(Method::Get | Method::Head))
    }
}

/// A word of the document, safe to show.
pub(super) fn shown(text: &str) -> String {
    shorten(&escape(text), 120)
}
