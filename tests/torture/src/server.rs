//! PostgreSQL for a torture: a schema of its own on a server that is there, or a server of its own that can be killed.

use std::path::{Path, PathBuf};
use std::process::Command;

use helve_core::RunId;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Names a server; see `scripts/postgres`.
const VARIABLE: &str = "HELVE_TEST_POSTGRES";

/// The server that the environment names; nothing, and a word about it, where it names none.
#[must_use]
pub fn known(test: &str) -> Option<String> {
    let server = std::env::var(VARIABLE).ok();
    if server.is_none() {
        helve_testkit::skip(test, format!("{VARIABLE} is not set (scripts/postgres starts a server)"));
    }
    server
}

/// A schema. Dropping this removes it.
#[derive(Debug)]
pub struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// A new one on this server.
    #[must_use]
    pub fn new(server: &str) -> Self {
        let name = format!("torture_{}", RunId::mint()).to_lowercase();
        ask(server, &format!("CREATE SCHEMA {name}"));
        Self { server: server.to_owned(), name }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of a store in it. The server knows by the name of the program who uses it.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_on(&self.server)
    }

    /// Like [`url`](Self::url), with another address of the server.
    #[must_use]
    pub fn url_on(&self, server: &str) -> String {
        let mark = if server.contains('?') { '&' } else { '?' };
        // These servers have no TLS, also where another road than that of the machine itself leads to them.
        format!("{server}{mark}sslmode=disable&application_name={}&options=-c%20search_path%3D{}", self.name, self.name)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Err(error) = query(&self.server, &format!("DROP SCHEMA {} CASCADE", self.name)) {
            eprintln!("the schema {} is still there: {error}", self.name);
        }
    }
}

/// A row, as text.
pub type Row = Vec<Option<String>>;

/// Asks a server. Gives the rows of all statements.
#[must_use]
pub fn rows(address: &str, sql: &str) -> Vec<Row> {
    query(address, sql).expect("an answer of the server")
}

fn query(address: &str, sql: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let messages = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
        let speaks = tokio::spawn(connection);
        let messages = client.simple_query(sql).await;
        drop(client);
        let _ = speaks.await;
        messages
    })?;
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()),
        _ => None,
    };
    Ok(messages.iter().filter_map(row).collect())
}

/// Asks a server for one number; 0 where nothing is there.
pub fn ask(address: &str, sql: &str) -> u32 {
    let rows = rows(address, sql);
    rows.first().and_then(|row| row.first()).and_then(Option::as_ref).map_or(0, |text| text.parse().expect("a number"))
}

/// A server of one torture alone.
#[derive(Debug)]
pub struct Server {
    url: String,
    folder: PathBuf,
}

impl Server {
    /// Starts a server; `None` if that is not possible here.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_for(None)
    }

    /// Starts one that another address of this machine leads to as well.
    #[must_use]
    pub fn start_for(listen: Option<&str>) -> Option<Self> {
        let said = script(&["start"], listen)?;
        let (url, folder) = said.trim().split_once('\n')?;
        Some(Self { url: url.to_owned(), folder: folder.into() })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Kills it as a crash would, and starts it again.
    pub fn crash(&self) {
        script(&["crash", &self.folder.to_string_lossy()], None).expect("the server is killed, and starts again");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if script(&["stop", &self.folder.to_string_lossy()], None).is_none() {
            eprintln!("a server is still there: {}", self.folder.display());
        }
    }
}

fn script(arguments: &[&str], listen: Option<&str>) -> Option<String> {
    let script =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is")).join("../../scripts/postgres");
    let output = Command::new(script).args(arguments).envs(listen.map(|address| ("HELVE_POSTGRES_LISTEN", address))).output();
    let output = output.ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
