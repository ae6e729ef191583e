//! One tool in the catalogue, with its names and what it displaced.

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
    duplicates: Vec<Reference>,
}

/// A tool of the same name that came later and is not called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// Where it comes from.
    pub source: SourceId,
    /// Where it is defined.
    pub location: Option<Arc<str>>,
}

impl Reference {
    pub(super) fn to(tool: &dyn DynTool, source: &SourceId) -> Self {
        Self { source: source.clone(), location: tool.spec().origin().location.clone() }
    }
}

impl Entry {
    pub(crate) fn new(tool: Arc<dyn DynTool>, source: SourceKey, duplicates: Vec<Reference>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = tool.spec().name();
        let model_name = match model_name(name) {
            std::borrow::Cow::Borrowed(_) => name.clone(),
            std::borrow::Cow::Owned(mapped) => mapped.into(),
        };
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), model_name, tool, source, duplicates }
    }

    /// The tool's name in the catalogue.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        self.tool.spec().name()
    }

    /// The name by which models call it.
    #[must_use]
    pub fn model_name(&self) -> &Arc<str> {
        &self.model_name
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &Arc<dyn DynTool> {
        &self.tool
    }

    /// What the tool says about itself.
    #[must_use]
    pub fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> &SourceId {
        &self.source.1
    }

    /// Where it comes from, and for whom.
    pub(crate) fn source_key(&self) -> &SourceKey {
        &self.source
    }

    /// What it is: where it comes from, how it is defined and what stands behind it. What a person allowed once and
    /// for all is bound to it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let (spec, behind) = (self.spec().hash(), self.spec().implementation());
        Digest::of([self.source().as_str().as_bytes(), spec.as_bytes(), behind.as_ref().map_or(&[][..], |behind| behind.as_bytes())])
    }

    /// Tools of the same name that came later.
    #[must_use]
    pub fn duplicates(&self) -> &[Reference] {
        &self.duplicates
    }

    /// Whether a pattern means this tool, by either of its names.
    #[must_use]
    pub fn is_named(&self, pattern: &Pattern) -> bool {
        pattern.matches(self.name()) || pattern.matches(&self.model_name)
    }

    /// Tells entries apart, also those of equal tools.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}
