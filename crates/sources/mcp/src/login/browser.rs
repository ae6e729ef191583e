//! Opens the login page for a person.

use std::process::Stdio;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::environment;
use helve_core::secret::is_secret_variable;
use helve_fetch::Url;
use tokio::process::Command;

/// Time within which a failure of the opener program is noticed. Some openers run as long as the browser does.
const SOON: Duration = Duration::from_secs(5);

/// Opens web pages for a person.
pub trait Browser: Send + Sync {
    /// Opens a URL. The URL has the scheme `http` or `https`, and no characters with a special meaning to a shell. The login continues
    /// while the future runs.
    ///
    /// # Errors
    /// Returns why the URL cannot be opened. The login then fails.
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>>;
}

/// The default browser of this system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemBrowser;

impl Browser for SystemBrowser {
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let program = opener().ok_or("opening a browser is not supported on this system")?;
            run(program, url).await
        })
    }
}

fn opener() -> Option<&'static str> {
    match std::env::consts::OS {
        "macos" => Some("open"),
        "linux" | "freebsd" | "netbsd" | "openbsd" | "dragonfly" => Some("xdg-open"),
        _ => None,
    }
}

async fn run(program: &str, url: &Url) -> Result<(), String> {
    // Other URLs could be parsed as an option, or start another program.
    if !matches!(url.scheme(), "http" | "https") {
        return Err("only http and https URLs are opened in a browser".to_owned());
    }
    let mut command = Command::new(program);
    command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The opener needs the environment to find the display, but no secrets.
    let plain = environment::vars_os().into_iter().filter(|(name, _)| !name.to_str().is_none_or(is_secret_variable));
    command.env_clear().envs(plain);
    let mut child = command.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    match tokio::time::timeout(SOON, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(format!("`{program}` ended with {status}")),
        Ok(Err(error)) => Err(format!("`{program}` failed: {error}")),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn an_address_is_one_argument_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("opener");
        let seen = folder.path().join("seen");
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$1\" > '{}'\n", seen.display());
        // Another process writes it: a file that is open for writing cannot be executed.
        let write = ["-c", "printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"", "sh", &script, program.to_str().expect("a path")];
        assert!(std::process::Command::new("sh").args(write).status().expect("a shell").success());
        let url: Url = "https://login.example/?a=$(touch%20x)&b=;id".parse().expect("an address");
        run(program.to_str().expect("a path"), &url).await.expect("it opens");
        assert_eq!(fs::read_to_string(seen).expect("a file"), "1\nhttps://login.example/?a=$(touch%20x)&b=;id\n");
    }

    #[tokio::test]
    async fn what_fails_says_so() {
        let url: Url = "https://login.example/".parse().expect("an address");
        assert!(run("/nowhere/at/all", &url).await.expect_err("no such program").contains("cannot be started"));
        assert!(run("false", &url).await.expect_err("it fails").contains("ended with"));
        let file: Url = "file:///etc/passwd".parse().expect("an address");
        assert!(run("true", &file).await.is_err());
    }
}
