//! Any sequence of operations gives the same answers on every engine, and leaves the same record.
//!
//! The store in memory is the model. `PROPTEST_CASES` says how many sequences are tried.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that goes wrong should stop, one that is skipped should say so"
)]

mod operation;
#[path = "../conformance/server.rs"]
mod server;
mod side;

use helve_core::store::MemoryStore;
use helve_store::{Durability, PostgresStore, SqliteStore};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use self::operation::{Operation, Pools};
use self::server::Schema;
use self::side::Side;

/// The default number of sequences, and their number of operations: 50 on average.
const SEQUENCES: u32 = 100;
const LENGTH: std::ops::RangeInclusive<usize> = 1..=100;

/// PostgreSQL, with one store for all sequences: tables take long to make.
struct Postgres {
    schema: Schema,
    store: PostgresStore,
}

impl Postgres {
    async fn open() -> Option<Self> {
        let schema = Schema::new("engines_agree with PostgreSQL").await?;
        // There is no power failure here either.
        let url = format!("{}%20-c%20synchronous_commit%3Doff", schema.url());
        Some(Self { store: PostgresStore::open(&url).await.expect("a store"), schema })
    }

    /// An empty record.
    async fn empty(&self) -> Side {
        let tables = ["tasks", "approvals", "runs", "snapshots", "events", "conversations", "messages", "holders", "bodies"];
        // For so few rows this is much faster than TRUNCATE.
        self.schema.execute(&tables.map(|table| format!("DELETE FROM helve_{table}")).join(";")).await;
        Side::new(self.store.clone())
    }
}

/// The same store on all engines.
struct Scene {
    model: Side,
    sqlite: Side,
    postgres: Option<Side>,
    pools: Pools,
    folder: TempDir,
}

impl Scene {
    async fn new(postgres: Option<&Postgres>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let sqlite = Side::new(open(&folder));
        let postgres = match postgres {
            Some(postgres) => Some(postgres.empty().await),
            None => None,
        };
        Self { model: Side::new(MemoryStore::default()), sqlite, postgres, pools: Pools::new(), folder }
    }

    fn engines(&mut self) -> impl Iterator<Item = (&'static str, &mut Side)> {
        [("SQLite", &mut self.sqlite)].into_iter().chain(self.postgres.as_mut().map(|side| ("PostgreSQL", side)))
    }

    async fn perform(&mut self, operation: Operation) -> Result<(), TestCaseError> {
        if let Operation::Restart = operation {
            self.restart().await;
        }
        // What happens in one millisecond has no order, and the engines are not asked in the same one.
        side::tick();
        let step = self.pools.step(operation);
        let expected = self.model.perform(&step).await;
        for (name, engine) in self.engines() {
            prop_assert_eq!(&expected, &engine.perform(&step).await, "{}: {:?}", name, step);
        }
        self.pools.learn(&self.model);
        Ok(())
    }

    /// The process ends, and another one goes on. Nothing is in the store that was not there before, and nothing is missing.
    async fn restart(&mut self) {
        for holder in self.pools.replace_holders() {
            self.model.leave(holder).await;
            for (_, engine) in self.engines() {
                engine.leave(holder).await;
            }
        }
        self.sqlite.reopen(open(&self.folder));
    }

    async fn compare(&mut self) -> Result<(), TestCaseError> {
        for step in self.pools.reads() {
            let expected = self.model.perform(&step).await;
            for (name, engine) in self.engines() {
                prop_assert_eq!(&expected, &engine.perform(&step).await, "{}: {:?}", name, step);
            }
        }
        Ok(())
    }
}

fn open(folder: &TempDir) -> SqliteStore {
    // There is no power failure here.
    SqliteStore::open_with(folder.path().join("store.db"), Durability::Off).expect("a store")
}

#[test]
fn engines_agree() {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = SEQUENCES;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let postgres = runtime.block_on(Postgres::open());
    let sequences = prop::collection::vec(operation::any(), LENGTH);
    let agree = |operations: Vec<Operation>| {
        runtime.block_on(async {
            let mut scene = Scene::new(postgres.as_ref()).await;
            // The first process takes over from those before it; here there were none.
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
