//! Connections: the connection pool, and pipelines that send several statements in one round trip.

use deadpool_postgres::{Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use helve_core::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::address::{Address, CONNECT_TIMEOUT};
use super::error::TransactionError;
use crate::crash;

/// Maximum number of connections in the pool. The connection for notifications is not part of it.
const CONNECTIONS: usize = 8;

/// Settings of every connection.
///
/// Sequential scans are off because a connection caches its plans: a plan for a nearly empty table would later scan a large one. JIT is
/// off because compiling plans costs more than it saves. The timeouts release the rows of a process that was frozen in a transaction or
/// lost its network.
const SETTINGS: &str = "SET enable_seqscan = off; SET jit = off; SET idle_in_transaction_session_timeout = '15s';
    SET lock_timeout = '30s'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// The parameters of a statement.
pub(super) type Values = Vec<Box<dyn ToSql + Send + Sync>>;

/// An SQL statement and its parameters.
pub(super) struct Query(pub &'static str, pub Values);

/// Creates the connection pool of a store.
pub(super) fn pool(address: Address) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(address.config, address.tls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let prepare = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move { client.batch_execute(SETTINGS).await.map_err(HookError::Backend) })
    });
    let pool = Pool::builder(manager).max_size(CONNECTIONS).runtime(Runtime::Tokio1).post_create(prepare);
    let pool =
        pool.wait_timeout(Some(CONNECT_TIMEOUT)).create_timeout(Some(CONNECT_TIMEOUT)).recycle_timeout(Some(CONNECT_TIMEOUT)).build();
    pool.map_err(|error| StoreError::Unavailable(format!("cannot create the connection pool: {error}")))
}

/// A connection from the pool. [`Session::put_back`] returns the connection to the pool. Dropping the session closes the connection,
/// because a transaction may be open on it.
pub(super) struct Session(Option<Client>);

impl Session {
    pub(super) async fn take(pool: &Pool) -> Result<Self, TransactionError> {
        Ok(Self(Some(pool.get().await?)))
    }

    /// Returns the connection to the pool.
    pub(super) fn put_back(mut self) {
        self.0.take();
    }

    /// Sends statements without waiting for responses in between, and returns the rows of each. Inside a transaction, all statements after
    /// the first error fail, including a `COMMIT`.
    pub(super) async fn pipeline(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, TransactionError> {
        let Some(client) = &self.0 else {
            return Err(TransactionError::Disconnected(StoreError::Unavailable("the connection is closed".to_owned())));
        };
        let mut prepared = Vec::with_capacity(queries.len());
        for Query(sql, values) in queries {
            prepared.push((client.prepare_cached(sql).await?, values));
        }
        // `join_all` polls the futures in this order, and each sends its statement when it is first polled.
        let sent = prepared.into_iter().map(|(statement, values)| async move {
            let rows = client.query_raw(&statement, values).await?;
            rows.try_collect::<Vec<Row>>().await
        });
        let results: Result<_, _> = join_all(sent).await.into_iter().collect();
        Ok(results?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Client::take(client));
        }
    }
}

/// Runs statements without a common transaction.
pub(super) async fn query_all(pool: &Pool, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, TransactionError> {
    let session = Session::take(pool).await?;
    let results = session.pipeline(queries).await;
    if !matches!(results, Err(TransactionError::Disconnected(_))) {
        session.put_back();
    }
    results
}

/// Runs one statement without an explicit transaction.
pub(super) async fn query(pool: &Pool, sql: &'static str, values: Values) -> Result<Vec<Row>, TransactionError> {
    Ok(query_all(pool, vec![Query(sql, values)]).await?.pop().unwrap_or_default())
}

/// Runs one statement that writes. `name` selects the crash points before and after its commit.
pub(super) async fn execute(pool: &Pool, name: &str, sql: &'static str, values: Values) -> Result<Vec<Row>, TransactionError> {
    if crash::is_chosen(name, crash::BEFORE) {
        query_all(pool, vec![Query("BEGIN", values![]), Query(sql, values)]).await?;
        std::process::abort();
    }
    let rows = query(pool, sql, values).await?;
    crash::reach(name, crash::AFTER);
    Ok(rows)
}

/// Boxes the parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => {{
        let values: $crate::postgres::session::Values = vec![$(Box::new($value)),*];
        values
    }};
}
pub(super) use values;
