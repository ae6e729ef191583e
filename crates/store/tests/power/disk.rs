//! A disk whose power can be cut: what was synced is there, of the rest any sectors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::trace::Step;

const SECTOR: usize = 512;

/// The disk under a store.
pub struct Disk {
    database: PathBuf,
    files: BTreeMap<String, File>,
    acknowledged: Vec<String>,
}

#[derive(Default, Clone)]
struct File {
    synced: Vec<u8>,
    since: Vec<Change>,
    /// Its name was removed from its folder, which is certain only once the folder is synced.
    removed: bool,
}

#[derive(Clone)]
enum Change {
    Sector(usize, Vec<u8>),
    Cut(usize),
}

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    pub images: usize,
    /// Images in which something is missing that was acknowledged.
    pub lost: usize,
    /// Images that are no sound database.
    pub damaged: usize,
}

impl Disk {
    pub fn new(database: &Path) -> Self {
        Self { database: database.to_owned(), files: BTreeMap::new(), acknowledged: Vec::new() }
    }

    /// Goes through what happened, and cuts the power at every sync and between them, in several ways each.
    pub fn judge(mut self, steps: &[Step], images: usize, subsets: usize, folder: &Path) -> Verdict {
        let moments = steps.iter().filter(|step| is_moment(step)).count().max(1);
        // At least so many images, at moments that lie evenly.
        let every = (moments * (subsets + 2) / images.max(1)).max(1);
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut verdict = Verdict::default();
        let mut moment = 0;
        for step in steps {
            if is_moment(step) {
                moment += 1;
                if moment % every == 0 {
                    for way in 0..subsets + 2 {
                        self.look(way, &mut random, folder, &mut verdict);
                    }
                }
            }
            self.take(step);
        }
        verdict
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Acknowledged(what) => self.acknowledged.push(what.clone()),
            Step::Removed(file) => self.files.entry(file.clone()).or_default().removed = true,
            Step::Synced(folder) if self.database.parent() == Some(Path::new(folder)) => self.files.retain(|_, file| !file.removed),
            Step::Synced(file) => {
                let file = self.files.entry(file.clone()).or_default();
                for change in std::mem::take(&mut file.since) {
                    change.apply(&mut file.synced);
                }
            }
            Step::Cut { file, length } => {
                let length = usize::try_from(*length).expect("a small file");
                self.files.entry(file.clone()).or_default().since.push(Change::Cut(length));
            }
            Step::Write { file, offset, bytes } => {
                let since = &mut self.files.entry(file.clone()).or_default().since;
                let mut at = usize::try_from(*offset).expect("a small file");
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let count = (SECTOR - at % SECTOR).min(rest.len());
                    since.push(Change::Sector(at, rest[..count].to_vec()));
                    (at, rest) = (at + count, &rest[count..]);
                }
            }
        }
    }

    /// Cuts the power now. The first way keeps nothing that is not synced, the second everything, the others as it comes.
    fn look(&self, way: usize, random: &mut Random, folder: &Path, verdict: &mut Verdict) {
        let image = folder.join("image");
        let _ = fs::remove_dir_all(&image);
        fs::create_dir(&image).expect("a folder");
        let database = image.join("store.db");
        for (name, file) in &self.files {
            let Some(ending) = name.strip_prefix(self.database.to_str().expect("a name")) else { continue };
            // What lies in memory is gone.
            if ending == "-shm" || (file.removed && (way == 1 || (way > 1 && random.flip()))) {
                continue;
            }
            let mut bytes = file.synced.clone();
            for change in &file.since {
                if way == 1 || (way > 1 && random.flip()) {
                    change.clone().apply(&mut bytes);
                }
            }
            fs::write(format!("{}{ending}", database.display()), bytes).expect("an image");
        }
        verdict.images += 1;
        match missing(&database, &self.acknowledged) {
            Ok(0) => {}
            Ok(_) => verdict.lost += 1,
            Err(_) => verdict.damaged += 1,
        }
    }
}

/// A moment at which the power is cut: before a sync has its effect, and at times in between for those who never sync.
fn is_moment(step: &Step) -> bool {
    match step {
        Step::Synced(_) => true,
        Step::Acknowledged(what) => what.ends_with("done"),
        Step::Write { .. } | Step::Cut { .. } | Step::Removed(_) => false,
    }
}

impl Change {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Cut(length) => bytes.resize(length, 0),
            Self::Sector(at, sector) => {
                if bytes.len() < at + sector.len() {
                    bytes.resize(at + sector.len(), 0);
                }
                bytes[at..at + sector.len()].copy_from_slice(&sector);
            }
        }
    }
}

/// How much of what was acknowledged is not there.
fn missing(database: &Path, acknowledged: &[String]) -> rusqlite::Result<usize> {
    let connection = Connection::open(database)?;
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if sound != "ok" {
        return Err(rusqlite::Error::InvalidQuery);
    }
    if acknowledged.is_empty() {
        return Ok(0);
    }
    // The tables themselves may not be there.
    let Ok(mut statement) = connection.prepare("SELECT id, state FROM tasks") else { return Ok(acknowledged.len()) };
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let states: BTreeMap<String, String> = rows.collect::<rusqlite::Result<_>>()?;
    let is_there = |line: &&String| {
        let (id, state) = line.split_once(' ').unwrap_or((line, ""));
        states.get(id).is_some_and(|found| state != "done" || found == "done")
    };
    Ok(acknowledged.iter().filter(|line| !is_there(line)).count())
}

/// Chance that is the same each time.
struct Random(u64);

impl Random {
    fn flip(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 63 == 1
    }
}
