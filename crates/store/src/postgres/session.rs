//! Connections: how they are made, lent and given back, and how several statements make one trip.

use deadpool_postgres::{Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use helve_core::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::address::{Address, PATIENCE};
use super::trouble::Trouble;
use crate::crash;

/// So many connections at most, beside the one that listens.
const CONNECTIONS: usize = 8;

/// What holds for every connection.
///
/// Plans are kept as long as a connection lives. One that was made while a table was nearly empty would read all of it when it
/// is full, so reading whole tables is discouraged; compiling plans costs more than it gives here. A process that was frozen in
/// a transaction, or that the network lost, must not keep others from its rows.
const SETTINGS: &str = "SET enable_seqscan = off; SET jit = off; SET idle_in_transaction_session_timeout = '15s';
    SET lock_timeout = '30s'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// What a statement is given.
pub(super) type Values = Vec<Box<dyn ToSql + Send + Sync>>;

/// A statement, and what it is given.
pub(super) struct Step(pub &'static str, pub Values);

/// The connections of a process.
pub(super) fn pool(address: Address) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(address.config, address.tls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let prepare = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move { client.batch_execute(SETTINGS).await.map_err(HookError::Backend) })
    });
    let pool = Pool::builder(manager).max_size(CONNECTIONS).runtime(Runtime::Tokio1).post_create(prepare);
    let pool = pool.wait_timeout(Some(PATIENCE)).create_timeout(Some(PATIENCE)).recycle_timeout(Some(PATIENCE)).build();
    pool.map_err(|error| StoreError::Unavailable(format!("no connections can be made: {error}")))
}

/// A connection that is lent. It goes back only by [`Session::give_back`]; else it is closed, because nobody knows what is
/// open on it.
pub(super) struct Session(Option<Client>);

impl Session {
    /// Lends one.
    pub(super) async fn lend(pool: &Pool) -> Result<Self, Trouble> {
        Ok(Self(Some(pool.get().await?)))
    }

    /// Others may have it.
    pub(super) fn give_back(mut self) {
        self.0.take();
    }

    /// Sends statements one behind the other without waiting in between, and gives what each answered. Inside a transaction
    /// the first failure makes the rest fail, a COMMIT among them.
    pub(super) async fn pipeline(&self, steps: Vec<Step>) -> Result<Vec<Vec<Row>>, Trouble> {
        let Some(client) = &self.0 else { return Err(Trouble::Broken(StoreError::Unavailable("the connection is gone".to_owned()))) };
        let mut prepared = Vec::with_capacity(steps.len());
        for Step(sql, values) in steps {
            prepared.push((client.prepare_cached(sql).await?, values));
        }
        // Each is sent when it is first asked, which happens in this order.
        let sent = prepared.into_iter().map(|(statement, values)| async move {
            let rows = client.query_raw(&statement, values).await?;
            rows.try_collect::<Vec<Row>>().await
        });
        let answers: Result<_, _> = join_all(sent).await.into_iter().collect();
        Ok(answers?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Client::take(client));
        }
    }
}

/// Statements outside a transaction: each is one by itself.
pub(super) async fn ask(pool: &Pool, steps: Vec<Step>) -> Result<Vec<Vec<Row>>, Trouble> {
    let session = Session::lend(pool).await?;
    let answers = session.pipeline(steps).await;
    if !matches!(answers, Err(Trouble::Broken(_))) {
        session.give_back();
    }
    answers
}

/// One statement outside a transaction.
pub(super) async fn ask_one(pool: &Pool, sql: &'static str, values: Values) -> Result<Vec<Row>, Trouble> {
    Ok(ask(pool, vec![Step(sql, values)]).await?.pop().unwrap_or_default())
}

/// One statement that changes something. Its name is for tests that let the process die beside its commit.
pub(super) async fn change_one(pool: &Pool, name: &str, sql: &'static str, values: Values) -> Result<Vec<Row>, Trouble> {
    if crash::is_chosen(name, crash::BEFORE) {
        ask(pool, vec![Step("BEGIN", values![]), Step(sql, values)]).await?;
        std::process::abort();
    }
    let rows = ask_one(pool, sql, values).await?;
    crash::reach(name, crash::AFTER);
    Ok(rows)
}

/// Boxes what a statement is given.
macro_rules! values {
    ($($value:expr),* $(,)?) => {{
        let values: $crate::postgres::session::Values = vec![$(Box::new($value)),*];
        values
    }};
}
pub(super) use values;
