//! Grants and revokes trust in a project folder, and reports what has changed since the folder was trusted.

use helve_project::{Capability, CapabilityChange, StateError};

use crate::compose::Helve;

/// The changes in a folder since a person trusted it.
#[derive(Debug, Clone, Default)]
pub struct TrustChanges {
    /// New and changed capabilities.
    pub changed: Vec<(Capability, CapabilityChange)>,
    /// Trusted settings that the folder no longer has.
    pub missing: Vec<Capability>,
}

/// # Trust
///
/// A project folder may come from someone else. Until a person trusts the folder, agents need approval for its tools, Helve does not start
/// its MCP servers, and its rules can only tighten.
impl Helve {
    /// Trusts the project folder with its current capabilities, and reloads the folder.
    ///
    /// # Errors
    /// Returns an error if the decision cannot be stored.
    pub fn trust(&self) -> Result<(), StateError> {
        let Some(project) = &self.project else { return Ok(()) };
        let report = project.report.read().clone();
        project.decisions()?.trust(&report.root, &report.capabilities)?;
        let _ = self.reload();
        Ok(())
    }

    /// Trusts one more file of the project folder, and reloads the folder.
    ///
    /// # Errors
    /// Returns an error if the decision cannot be stored.
    pub fn trust_file(&self, file: &str) -> Result<(), StateError> {
        let Some(project) = &self.project else { return Ok(()) };
        let report = project.report.read().clone();
        let trusted: Vec<Capability> = report.capabilities.iter().filter(|capability| capability.file == file).cloned().collect();
        project.decisions()?.trust_more(&report.root, &trusted)?;
        let _ = self.reload();
        Ok(())
    }

    /// Compares the project folder with what was trusted.
    ///
    /// # Errors
    /// Returns an error if the stored decisions cannot be read.
    pub fn trust_changes(&self) -> Result<TrustChanges, StateError> {
        let Some(project) = &self.project else { return Ok(TrustChanges::default()) };
        let report = project.report.read().clone();
        let decisions = project.decisions()?;
        let changed = report.capabilities.iter().filter_map(|one| Some((one.clone(), decisions.change(&report.root, one)?))).collect();
        Ok(TrustChanges { changed, missing: decisions.missing(&report.root, &report.capabilities) })
    }

    /// Revokes trust in the project folder, and reloads the folder. Returns whether the folder was trusted.
    ///
    /// # Errors
    /// Returns an error if the decision cannot be stored.
    pub fn revoke_trust(&self) -> Result<bool, StateError> {
        let Some(project) = &self.project else { return Ok(false) };
        let known = project.decisions()?.revoke(&project.folder)?;
        let _ = self.reload();
        Ok(known)
    }
}
