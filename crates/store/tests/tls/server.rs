//! A PostgreSQL server with a certificate for `localhost`, and for no other name. It is gone when this is dropped.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

/// Allows tests to use PostgreSQL; see `scripts/postgres`.
const VARIABLE: &str = "HELVE_TEST_POSTGRES";
/// Timeout for something that must happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How the programs make a key.
const NEW_KEY: [&str; 6] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-sha256"];

pub struct Server {
    port: String,
    folder: PathBuf,
}

impl Server {
    /// Starts one; nothing, and a word about it, where that cannot be done.
    pub fn start(test: &str) -> Option<Self> {
        let skipped = |why: &str| helve_testkit::skip(test, why);
        if std::env::var_os(VARIABLE).is_none() {
            skipped(&format!("{VARIABLE} is not set (scripts/postgres starts a server)"));
            return None;
        }
        if Command::new("openssl").arg("version").output().is_err() {
            skipped("openssl is not installed");
            return None;
        }
        if !installed() {
            skipped("the programs of a PostgreSQL server are not installed");
            return None;
        }
        let started = run(script().arg("start"));
        let said = String::from_utf8(started.stdout).expect("text");
        let (url, folder) = said.trim().split_once('\n').expect("an address and a folder");
        let port = url.split([':', '/']).nth(4).expect("postgres://user@host:port/name").to_owned();
        let server = Self { port, folder: folder.into() };
        server.certify();
        Some(server)
    }

    /// Makes an authority, a certificate of it, and another authority; and uses them.
    fn certify(&self) {
        let folder = &self.folder;
        for name in ["ca", "stranger"] {
            let (key, certificate, subject) = (format!("{name}.key"), format!("{name}.crt"), format!("/CN={name} of a test"));
            openssl(folder, &["req", "-x509", "-days", "2", "-keyout", &key, "-out", &certificate, "-subj", &subject], &NEW_KEY);
        }
        openssl(folder, &["req", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost"], &NEW_KEY);
        fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n").expect("a file");
        let sign = ["x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"];
        openssl(folder, &sign, &["-sha256", "-extfile", "names", "-out", "server.crt"]);
        self.own("server.key", 0o600);
        self.own("server.crt", 0o644);
        let rules = "local all all trust\nhostssl all ada 127.0.0.1/32 scram-sha-256\nhost all helve 127.0.0.1/32 trust\n";
        fs::write(folder.join("data/pg_hba.conf"), rules).expect("the server's rules");
        self.set(&format!("ssl = on\nssl_cert_file = '{0}/server.crt'\nssl_key_file = '{0}/server.key'\n", folder.display()));
    }

    /// Gives a file to the user that the server runs as.
    fn own(&self, name: &str, mode: u32) {
        let (file, owner) = (self.folder.join(name), fs::metadata(&self.folder).expect("a folder"));
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("permissions");
        chown(&file, Some(owner.uid()), Some(owner.gid())).expect("an owner");
    }

    /// Adds settings, and starts it again.
    fn set(&self, settings: &str) {
        let file = self.folder.join("data/postgresql.conf");
        let mut text = fs::read_to_string(&file).expect("the server's settings");
        text.push_str(settings);
        fs::write(&file, text).expect("the server's settings");
        run(script().arg("crash").arg(&self.folder));
    }

    /// From now on it says that it has no TLS.
    pub fn without_tls(&self) {
        self.set("ssl = off\n");
    }

    /// The certificate of its authority.
    pub fn root(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The certificate of another one.
    pub fn stranger(&self) -> PathBuf {
        self.folder.join("stranger.crt")
    }

    /// Its address under a name.
    pub fn url(&self, host: &str, options: &str) -> String {
        let user = if options.contains("user=") { "" } else { "helve@" };
        format!("postgres://{user}{host}:{}/postgres?{options}", self.port)
    }

    pub async fn add_user(&self, name: &str, password: &str) {
        self.ask(&format!("CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{password}'")).await;
    }

    /// Whether the connections of an application that work are encrypted, and whether the one that listens is. Waits for it.
    pub async fn connections(&self, application: &str) -> (bool, bool) {
        let sql = format!(
            "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '{application}'
             GROUP BY query LIKE 'LISTEN%' OR query LIKE 'NOTIFY%' ORDER BY query LIKE 'LISTEN%' OR query LIKE 'NOTIFY%'"
        );
        let begun = Instant::now();
        loop {
            if let [works, listens] = &self.ask(&sql).await[..] {
                return (works == "t", listens == "t");
            }
            assert!(begun.elapsed() < PATIENCE, "{application} works and listens");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The first column of what a statement gives.
    async fn ask(&self, sql: &str) -> Vec<String> {
        let (client, connection) = tokio_postgres::connect(&self.url("127.0.0.1", "sslmode=disable"), NoTls).await.expect("the server");
        let speaks = tokio::spawn(connection);
        let said = client.simple_query(sql).await.expect("a statement");
        drop(client);
        let _ = speaks.await;
        let row = |message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        said.into_iter().filter_map(row).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stopped = script().arg("stop").arg(&self.folder).status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!("a server is still there: {}", self.folder.display());
        }
    }
}

fn script() -> Command {
    Command::new(
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is")).join("../../scripts/postgres"),
    )
}

/// The script would install what is missing, which a test must not.
fn installed() -> bool {
    let here = |folder: &Path| folder.join("initdb").exists();
    let known = std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| here(&folder)));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    known || versions.into_iter().any(|version| here(&version.path().join("bin")))
}

fn openssl(folder: &Path, first: &[&str], rest: &[&str]) {
    run(Command::new("openssl").args(first).args(rest).current_dir(folder));
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("a program");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}
