//! What a store takes: memory of this process, its log, its room, and rows that are dead and not swept.

use std::path::PathBuf;

use crate::location::StoreLocation;
use crate::server;

/// What it takes at a moment, in bytes and rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub memory: u64,
    pub log: u64,
    pub size: u64,
    pub dead: u64,
}

const TABLES: &str = "SELECT coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(pg_total_relation_size(relid)), 0)::bigint
    FROM pg_stat_user_tables WHERE schemaname = current_schema()";

/// Looks at a store.
pub(super) struct Gauge(StoreLocation);

impl Gauge {
    pub(super) fn new(place: &StoreLocation) -> Self {
        Self(place.clone())
    }

    pub(super) fn look(&self) -> Sample {
        let memory = memory();
        match &self.0 {
            StoreLocation::File(file) => {
                let size = |ending: &str| {
                    let mut name = file.as_os_str().to_owned();
                    name.push(ending);
                    std::fs::metadata(PathBuf::from(name)).map_or(0, |file| file.len())
                };
                Sample { memory, log: size("-wal"), size: size(""), dead: 0 }
            }
            // The server's log belongs to all of its databases, and it keeps that in bounds by itself.
            StoreLocation::Server(address) => {
                let rows = server::rows(address, TABLES);
                let number = |column: usize| rows[0][column].as_ref().map_or(0, |text| text.parse().expect("a number"));
                Sample { memory, log: 0, size: number(1), dead: number(0) }
            }
        }
    }
}

/// How much of this process is in memory.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
