//! Implements `Debug` for types that are too large to print, or that contain secrets.

use std::fmt;

use super::Helve;

impl fmt::Debug for Helve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helve").field("tools", &self.catalogue).field("executor", &self.executor).finish_non_exhaustive()
    }
}

/// Omits addresses, which may contain passwords.
#[cfg(feature = "project")]
impl fmt::Debug for super::ProjectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.agents.iter().map(|agent| &agent.file.name).collect();
        let mut shown = f.debug_struct("ProjectReport");
        shown.field("root", &self.root).field("agents", &agents).field("trust", &self.trust).field("diagnostics", &self.diagnostics);
        shown.finish_non_exhaustive()
    }
}

#[cfg(all(feature = "project", feature = "models"))]
impl fmt::Debug for super::ChosenModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ChosenModel");
        shown.field("model", &self.model.info().name).field("because", &self.because).field("strategy", &self.strategy);
        shown.finish_non_exhaustive()
    }
}
