//! Reads an OpenAPI document: checks its version, resolves references, and lists its operations.

use helve_core::authored::FieldError;
use helve_core::printable::{escape, shorten};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::SkippedOperation;
use crate::definition::Method;

/// Maximum number of references in a chain.
const MAX_HOPS: usize = 16;
/// Maximum number of operations in a document, imported or not. The largest public documents have about a thousand.
const MAX_OPERATIONS: usize = 20_000;

/// The methods of a path item: key in the document, name in requests, and the method for tools, if tools support it.
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

/// An operation of the document: a method of a path.
pub(super) struct Operation<'d> {
    /// The name of the method, such as `GET`.
    pub verb: &'static str,
    /// The method; `None` if tools do not support it.
    pub method: Option<Method>,
    pub path: &'d str,
    pub id: Option<&'d str>,
    pub fields: &'d Map<String, Value>,
    /// The fields of the path item, which apply to all its operations.
    pub shared: &'d Map<String, Value>,
}

/// The operations of a document, and the path items and operations that are invalid.
pub(super) struct OperationList<'d> {
    pub operations: Vec<Operation<'d>>,
    pub unreadable: Vec<SkippedOperation>,
}

impl<'d> Document<'d> {
    /// Checks that the document is OpenAPI 3.
    pub fn new(root: &'d Value) -> Result<Self, FieldError> {
        let wrong = |message: &str, hint: &str| Err(FieldError::new("/openapi", message).hint(hint));
        if root.get("swagger").is_some() {
            return wrong("the document is Swagger 2.0; OpenAPI 3 is required", "convert it first, for example with `swagger2openapi`");
        }
        // YAML parses `openapi: 3.1` as a number.
        let version = match root.get("openapi") {
            Some(Value::String(version)) => version.clone(),
            Some(Value::Number(version)) => version.to_string(),
            _ => return wrong("not an OpenAPI document", "the document must contain `openapi: 3.0.3` or `openapi: 3.1.0`"),
        };
        if version != "3" && !version.starts_with("3.") {
            let message = format!("OpenAPI {} is not supported", shown(&version));
            return wrong(&message, "supported versions: 3.0 and 3.1");
        }
        match root.get("paths") {
            Some(Value::Object(paths)) => Ok(Self { root, paths }),
            _ => wrong("the document has no `paths`", "use the document that defines the operations"),
        }
    }

    /// Returns a top-level field of the document.
    pub fn field(&self, name: &str) -> Option<&'d Value> {
        self.root.get(name)
    }

    /// Returns all operations in document order. Fails if there are too many.
    pub fn operations(&self) -> Result<OperationList<'d>, FieldError> {
        let mut list = OperationList { operations: Vec::new(), unreadable: Vec::new() };
        for (path, item) in self.paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
            let shared = self.follow(item).and_then(|item| item.as_object().ok_or_else(|| "the path has no operations".to_owned()));
            let shared = match shared {
                Ok(shared) => shared,
                Err(reason) => {
                    list.unreadable.push(SkippedOperation { operation: shown(path), reason });
                    continue;
                }
            };
            for (key, value) in shared {
                let Some((_, verb, method)) = METHODS.iter().find(|(name, ..)| name == key) else { continue };
                let Some(fields) = value.as_object() else {
                    let operation = shown(&format!("{verb} {path}"));
                    list.unreadable.push(SkippedOperation { operation, reason: "its definition is not an object".into() });
                    continue;
                };
                let id = fields.get("operationId").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
                list.operations.push(Operation { verb, method: *method, path, id, fields, shared });
            }
            if list.operations.len() > MAX_OPERATIONS {
                return Err(FieldError::new("/openapi", format!("the document has more than {MAX_OPERATIONS} operations")));
            }
        }
        Ok(list)
    }

    /// Returns the value, or the value that it refers to if it is a reference.
    pub fn follow(&self, value: &'d Value) -> Result<&'d Value, String> {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            match value.get("$ref").and_then(Value::as_str) {
                Some(reference) => value = self.target(reference)?,
                None => return Ok(value),
            }
        }
        Err("it has circular references".into())
    }

    /// Returns the value that a reference points to.
    pub fn target(&self, reference: &str) -> Result<&'d Value, String> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(format!("its reference `{}` points outside the document; bundle the document first", shown(reference)));
        };
        let pointer = percent_decode_str(fragment).decode_utf8_lossy();
        self.root.pointer(&pointer).ok_or_else(|| format!("its reference `{}` cannot be resolved", shown(reference)))
    }
}

impl Operation<'_> {
    /// Returns the `operationId` of the operation, or its method and path.
    pub fn label(&self) -> String {
        self.id.map_or_else(|| shown(&format!("{} {}", self.verb, self.path)), shown)
    }

    pub fn is_deprecated(&self) -> bool {
        self.fields.get("deprecated") == Some(&Value::Bool(true))
    }

    /// Returns the tags of the operation.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.fields.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns whether the operation is read-only: GET or HEAD.
    pub fn reads(&self) -> bool {
        matches!(self.method, Some(Method::Get | Method::Head))
    }
}

/// Returns a text of the document, escaped and shortened for display.
pub(super) fn shown(text: &str) -> String {
    shorten(&escape(text), 120)
}
