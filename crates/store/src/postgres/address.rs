//! Parses the URL of a server: host, timeouts and TLS options.
//!
//! The defaults are stricter than those of other clients: only connections on this machine are unencrypted, and TLS always verifies
//! the host name.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use helve_core::StoreError;
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::Tls;

/// Timeout for a new connection, and for waiting for a free connection of the pool.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The parsed URL of a server.
#[derive(Clone)]
pub(super) struct Address {
    pub config: Config,
    pub tls: Tls,
}

impl Address {
    /// Parses a URL. Errors do not quote the URL, because it may contain a password.
    pub(super) fn read(url: &str) -> Result<Self, StoreError> {
        let (url, options) = split_options(url);
        // The cause is not included: it could quote a part of the password.
        let wrong = "invalid store URL: write postgres://user:password@host:port/database?sslmode=require, and in user and password write \
            @ : / ? as %40 %3A %2F %3F";
        let mut config: Config = url.parse().map_err(|_| StoreError::Conflict(wrong.to_owned()))?;
        let mode = options.mode(&config)?;
        config.ssl_mode(mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("helve");
        }
        // Detect a dead server after half a minute; the default of the operating system is two hours.
        config.keepalives_idle(Duration::from_secs(15)).keepalives_interval(Duration::from_secs(5)).keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(30));
        let tls = if mode == SslMode::Disable { Tls::none() } else { Tls::new(options.root.as_deref())? };
        Ok(Self { config, tls })
    }
}

/// The TLS options in a URL.
#[derive(Debug, Default, PartialEq, Eq)]
struct TlsOptions {
    mode: Option<String>,
    /// The file of the certificate authorities to trust instead of those of this machine.
    root: Option<PathBuf>,
}

impl TlsOptions {
    fn mode(&self, config: &Config) -> Result<SslMode, StoreError> {
        // If the URL is a `key=value` list, the library has parsed `sslmode`. `Prefer` is also its default, so it counts as not set.
        let known = match config.get_ssl_mode() {
            SslMode::Disable => Some("disable"),
            SslMode::Require => Some("require"),
            _ => None,
        };
        let local = |host: &Host| matches!(host, Host::Unix(_));
        if !config.get_hosts().is_empty() && config.get_hosts().iter().all(local) && config.get_hostaddrs().is_empty() {
            // Unix sockets support no TLS, and need none.
            return Ok(SslMode::Disable);
        }
        match self.mode.as_deref().or(known) {
            Some("disable") => Ok(SslMode::Disable),
            Some("prefer") => Ok(SslMode::Prefer),
            Some("require" | "verify-ca" | "verify-full") => Ok(SslMode::Require),
            Some(other) => Err(StoreError::Conflict(format!(
                "unknown sslmode={other} in the store URL; use disable, prefer, require, verify-ca or verify-full"
            ))),
            None if self.root.is_none() && is_local(config) => Ok(SslMode::Disable),
            None => Ok(SslMode::Require),
        }
    }
}

/// Splits a URL into the URL without TLS options, and the TLS options.
fn split_options(url: &str) -> (Cow<'_, str>, TlsOptions) {
    let mut options = TlsOptions::default();
    let scheme = ["postgres://", "postgresql://"].iter().find(|scheme| url.starts_with(**scheme));
    let Some(rest) = scheme.map(|scheme| &url[scheme.len()..]) else { return (url.into(), options) };
    // Search after the `@`: a question mark in a password does not start the query.
    let place = rest.find('@').unwrap_or(0);
    let Some(mark) = rest[place..].find('?').map(|mark| url.len() - rest.len() + place + mark) else { return (url.into(), options) };
    let others = url[mark + 1..].split('&').filter(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => options.mode = Some(value()),
            // As in other clients, `system` means the certificate authorities of this machine.
            "sslrootcert" => options.root = Some(value()).filter(|file| file != "system").map(PathBuf::from),
            _ => return true,
        }
        false
    });
    let others: Vec<&str> = others.collect();
    let rest = if others.is_empty() { url[..mark].into() } else { format!("{}?{}", &url[..mark], others.join("&")).into() };
    (rest, options)
}

/// Returns whether all hosts are on this machine.
fn is_local(config: &Config) -> bool {
    let named = |host: &Host| match host {
        Host::Tcp(name) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        Host::Unix(_) => true,
    };
    match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(named),
        addresses => addresses.iter().all(IpAddr::is_loopback),
    }
}

#[cfg(test)]
mod tests;
