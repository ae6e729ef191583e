//! Remembers in the user's state folder which MCP servers use the legacy era of the protocol, that is, with a handshake.

use std::collections::BTreeMap;

use helve_core::{Digest, Timestamp};
use helve_mcp::EraStore;
use helve_mcp_wire::Era;
use helve_project::StateFolder;

const ERAS: &str = "mcp-eras.json";
/// Number of days for which an era is remembered. The server may be updated later.
const ERA_DAYS: i64 = 7;

/// The file that lists the servers that used the legacy era, with times. Modern servers are probed in any case.
pub(super) struct EraFile(pub(super) StateFolder);

impl EraFile {
    fn read(&self) -> BTreeMap<Digest, Timestamp> {
        self.0.read(ERAS).ok().flatten().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

impl EraStore for EraFile {
    fn era(&self, server: &Digest) -> Option<Era> {
        let since = Timestamp::now().duration_since(*self.read().get(server)?);
        (0..ERA_DAYS * 86_400).contains(&since.as_secs()).then_some(Era::Legacy)
    }

    fn remember(&self, server: &Digest, era: Era) {
        let keep = || {
            let _lock = self.0.lock().ok()?;
            let mut eras = self.read();
            match era {
                Era::Legacy => eras.insert(*server, Timestamp::now()),
                Era::Modern => eras.remove(server),
            };
            self.0.write(ERAS, &serde_json::to_string(&eras).ok()?).ok()
        };
        if keep().is_none() {
            tracing::debug!("cannot store the protocol era of an MCP server");
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
        let file = EraFile(StateFolder::at(folder.path()));
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
        let file = EraFile(StateFolder::at(folder.path()));
        let server = Digest::of([b"server".as_slice()]);
        std::fs::write(folder.path().join(ERAS), "{damaged").expect("a file");
        assert_eq!(file.era(&server), None);
        file.remember(&server, Era::Legacy);
        assert_eq!(file.era(&server), Some(Era::Legacy));
    }
}
