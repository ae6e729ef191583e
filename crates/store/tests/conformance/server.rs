//! A PostgreSQL server for tests, if there is one: each test has a schema of its own, which is gone afterwards.

use helve_store::PostgresStore;
use tokio_postgres::NoTls;

/// Names the server; see `scripts/postgres`.
const VARIABLE: &str = "HELVE_TEST_POSTGRES";

/// A schema of a test.
pub struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// A new one; nothing, and a word about it, where there is no server.
    pub async fn new(test: &str) -> Option<Self> {
        let Ok(server) = std::env::var(VARIABLE) else {
            helve_testkit::skip(test, format!("{VARIABLE} is not set (scripts/postgres starts a server)"));
            return None;
        };
        let name = format!("test_{}", helve_core::RunId::mint()).to_lowercase();
        execute(&server, &format!("CREATE SCHEMA {name}")).await;
        Some(Self { server, name })
    }

    /// The address of the schema.
    pub fn url(&self) -> String {
        let mark = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{mark}application_name={}&options=-c%20search_path%3D{}", self.server, self.name, self.name)
    }

    /// A store in it: each is like a process of its own.
    #[allow(dead_code, reason = "not every test file needs it")]
    pub async fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.url()).await.expect("a store")
    }

    /// Runs a statement in it.
    #[allow(dead_code, reason = "not every test file needs it")]
    pub async fn execute(&self, sql: &str) {
        execute(&self.url(), sql).await;
    }
}

async fn execute(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server");
    let speaks = tokio::spawn(connection);
    client.batch_execute(sql).await.expect("a statement");
    drop(client);
    let _ = speaks.await;
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (server, sql) = (self.server.clone(), format!("DROP SCHEMA {} CASCADE", self.name));
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(execute(&server, &sql));
        });
        if dropped.join().is_err() {
            eprintln!("the schema {} is still there", self.name);
        }
    }
}
