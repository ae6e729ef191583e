//! Remembers in the user's state folder which MCP servers use the legacy era of the protocol, that is, with a handshake.

use std::collections::BTreeMap;

use helve_core::{Digest, Timestamp};
use helve_mcp::EraStore;
use helve_mcp_wire::Era;
use helve_project::{OnDamage, StateFile, StateFolder};

const ERAS: &str = "mcp-eras.json";
/// Number of days for which an era is remembered. The server may be updated later.
const ERA_DAYS: i64 = 7;

/// The file that lists the servers that used the legacy era, with times. Modern servers are probed in any case.
pub(super) struct EraFile(StateFile<BTreeMap<Digest, Timestamp>>);

impl EraFile {
    pub(super) fn new(state: StateFolder) -> Self {
        Self(StateFile::new(state, ERAS, OnDamage::StartEmpty))
    }
}

impl EraStore for EraFile {
    fn era(&self, server: &Digest) -> Option<Era> {
        let since = Timestamp::now().duration_since(*self.0.load().ok()?.get(server)?);
        (0..ERA_DAYS * 86_400).contains(&since.as_secs()).then_some(Era::Legacy)
    }

    fn remember(&self, server: &Digest, era: Era) {
        let kept = self.0.change(|eras| match era {
            Era::Legacy => eras.insert(*server, Timestamp::now()),
            Era::Modern => eras.remove(server),
        });
        if let Err(error) = kept {
            tracing::debug!(%error, "cannot store the protocol era of an MCP server");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &std::path::Path) -> String {
        std::fs::read_to_string(folder.join(ERAS)).expect("a file")
    }

    #[test]
    fn the_older_era_is_remembered_for_a_week_and_the_newer_one_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = EraFile::new(StateFolder::at(folder.path()));
        let (old, new) = (Digest::of([b"old".as_slice()]), Digest::of([b"new".as_slice()]));
        file.remember(&old, Era::Legacy);
        file.remember(&new, Era::Modern);
        assert_eq!((file.era(&old), file.era(&new)), (Some(Era::Legacy), None));
        let week_ago = Timestamp::now() - std::time::Duration::from_hours(24 * 7 + 1);
        std::fs::write(folder.path().join(ERAS), format!(r#"{{"{old}": "{week_ago}"}}"#)).expect("a file");
        assert_eq!(file.era(&old), None, "it may have been updated since");
        file.remember(&old, Era::Legacy);
        file.remember(&old, Era::Modern);
        assert_eq!((file.era(&old), written(folder.path()).as_str()), (None, "{}"));
    }

    #[test]
    fn a_damaged_file_costs_nothing_but_a_question() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = EraFile::new(StateFolder::at(folder.path()));
        let server = Digest::of([b"server".as_slice()]);
        std::fs::write(folder.path().join(ERAS), "{damaged").expect("a file");
        assert_eq!(file.era(&server), None);
        file.remember(&server, Era::Legacy);
        assert_eq!(file.era(&server), Some(Era::Legacy));
    }
}
