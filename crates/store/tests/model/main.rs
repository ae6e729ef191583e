//! Any sequence of operations gives the same answers on every engine, and leaves the same record.
//!
//! The store in memory is the model. `PROPTEST_CASES` says how many sequences are tried.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

mod operation;
mod side;

use helve_core::store::MemoryStore;
use helve_store::SqliteStore;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use self::operation::{Operation, Pools};
use self::side::Side;

/// How many sequences are tried where nobody says otherwise, and how many operations they have: 50 on average.
const SEQUENCES: u32 = 100;
const LENGTH: std::ops::RangeInclusive<usize> = 1..=100;

/// The same record on both engines.
struct Scene {
    model: Side,
    sqlite: Side,
    pools: Pools,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let sqlite = Side::new(open(&folder));
        Self { model: Side::new(MemoryStore::default()), sqlite, pools: Pools::new(), folder }
    }

    async fn perform(&mut self, operation: Operation) -> Result<(), TestCaseError> {
        if let Operation::Restart = operation {
            self.restart().await;
        }
        // What happens in one millisecond has no order, and the engines are not asked in the same one.
        side::tick();
        let step = self.pools.step(operation);
        let (expected, got) = (self.model.perform(&step).await, self.sqlite.perform(&step).await);
        prop_assert_eq!(&expected, &got, "{:?}", step);
        self.pools.learn(&self.model);
        Ok(())
    }

    /// The process ends, and another one goes on. Nothing is in the file that was not there before, and nothing is missing.
    async fn restart(&mut self) {
        for holder in self.pools.replace_holders() {
            self.model.leave(holder).await;
            self.sqlite.leave(holder).await;
        }
        self.sqlite.reopen(open(&self.folder));
    }

    async fn compare(&mut self) -> Result<(), TestCaseError> {
        for step in self.pools.reads() {
            prop_assert_eq!(self.model.perform(&step).await, self.sqlite.perform(&step).await, "{:?}", step);
        }
        Ok(())
    }
}

fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("record.db")).expect("a store")
}

#[test]
fn engines_agree() {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = SEQUENCES;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let sequences = prop::collection::vec(operation::any(), LENGTH);
    let agree = |operations: Vec<Operation>| {
        runtime.block_on(async {
            let mut scene = Scene::new();
            // Who comes first takes over from those before; here nobody was.
            scene.perform(Operation::Recover).await?;
            for operation in operations {
                scene.perform(operation).await?;
            }
            scene.compare().await
        })
    };
    if let Err(difference) = TestRunner::new(config).run(&sequences, agree) {
        panic!("{difference}");
    }
}
