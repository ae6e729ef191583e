//! One tool in the catalogue, with its names and its duplicates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helve_core::{Digest, DynTool, Pattern, SourceId, ToolSpec};
use serde::Serialize;

use super::SourceKey;
use crate::names::model_name;

/// One tool in the catalogue.
pub struct Entry {
    id: u64,
    model_name: Arc<str>,
    tool: Arc<dyn DynTool>,
    source: SourceKey,
    duplicates: Vec<DuplicateTool>,
}

/// A tool of the same name from a later source, which is not called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DuplicateTool {
    /// The source of the tool.
    pub source: SourceId,
    /// The file and line of the tool's definition, if known.
    pub location: Option<Arc<str>>,
}

impl DuplicateTool {
    pub(super) fn new(tool: &dyn DynTool, source: &SourceId) -> Self {
        Self { source: source.clone(), location: tool.spec().origin().location.clone() }
    }
}

impl Entry {
    pub(crate) fn new(tool: Arc<dyn DynTool>, source: SourceKey, duplicates: Vec<DuplicateTool>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = tool.spec().name();
        let model_name = match model_name(name) {
            std::borrow::Cow::Borrowed(_) => name.clone(),
            std::borrow::Cow::Owned(mapped) => mapped.into(),
        };
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), model_name, tool, source, duplicates }
    }

    /// Returns the tool's name in the catalogue.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        self.tool.spec().name()
    }

    /// Returns the tool's name for models.
    #[must_use]
    pub fn model_name(&self) -> &Arc<str> {
        &self.model_name
    }

    /// Returns the tool itself.
    #[must_use]
    pub fn tool(&self) -> &Arc<dyn DynTool> {
        &self.tool
    }

    /// Returns the tool's spec.
    #[must_use]
    pub fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    /// Returns the id of the tool's source.
    #[must_use]
    pub fn source(&self) -> &SourceId {
        &self.source.1
    }

    /// Returns the tool's source and its scope.
    pub(crate) fn source_key(&self) -> &SourceKey {
        &self.source
    }

    /// Returns the digest of the tool's source, definition and implementation. Lasting approvals are bound to this digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let (spec, implementation) = (self.spec().hash(), self.spec().implementation());
        Digest::of([
            self.source().as_str().as_bytes(),
            spec.as_bytes(),
            implementation.as_ref().map_or(&[][..], |digest| digest.as_bytes()),
        ])
    }

    /// Returns the tools of the same name from later sources. These tools are not called.
    #[must_use]
    pub fn duplicates(&self) -> &[DuplicateTool] {
        &self.duplicates
    }

    /// Returns whether a pattern matches one of the tool's names.
    #[must_use]
    pub fn is_named(&self, pattern: &Pattern) -> bool {
        pattern.matches(self.name()) || pattern.matches(&self.model_name)
    }

    /// Returns the id of the entry, which is unique even among entries of equal tools.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}
