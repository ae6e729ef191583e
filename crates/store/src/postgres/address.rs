//! The address of a server: whom to speak to, how patiently, and whether in secret.
//!
//! Stricter than other programs: where nothing is said, only what stays on this machine may go unencrypted, and whoever speaks TLS
//! also proves its name.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use helve_core::StoreError;
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::Tls;

/// How long a connection may take to be made, or to be free.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How to reach a server. Clones share.
#[derive(Clone)]
pub(super) struct Address {
    pub config: Config,
    pub tls: Tls,
}

impl Address {
    /// Reads an address.
    pub(super) fn read(url: &str) -> Result<Self, StoreError> {
        let (url, wishes) = split(url);
        // What exactly is wrong is not said: it could be a part of the password.
        let wrong = "the address of the record cannot be read: it looks like postgres://user:password@host:port/database?sslmode=require, and in \
            user and password @ : / ? are written as %40 %3A %2F %3F";
        let mut config: Config = url.parse().map_err(|_| StoreError::Conflict(wrong.to_owned()))?;
        let mode = wishes.mode(&config)?;
        config.ssl_mode(mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("helve");
        }
        // A partner that is silent for so long is gone; the default is two hours.
        config.keepalives_idle(Duration::from_secs(15)).keepalives_interval(Duration::from_secs(5)).keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(30));
        let tls = if mode == SslMode::Disable { Tls::none() } else { Tls::new(wishes.root.as_deref())? };
        Ok(Self { config, tls })
    }
}

/// What an address says about TLS.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wishes {
    mode: Option<String>,
    /// The only authorities that are believed.
    root: Option<PathBuf>,
}

impl Wishes {
    fn mode(&self, config: &Config) -> Result<SslMode, StoreError> {
        // In the notation without `postgres://` it was read already; there nobody can tell `prefer` from nothing.
        let known = match config.get_ssl_mode() {
            SslMode::Disable => Some("disable"),
            SslMode::Require => Some("require"),
            _ => None,
        };
        let local = |host: &Host| matches!(host, Host::Unix(_));
        if !config.get_hosts().is_empty() && config.get_hosts().iter().all(local) && config.get_hostaddrs().is_empty() {
            // The server has no TLS there, and needs none.
            return Ok(SslMode::Disable);
        }
        match self.mode.as_deref().or(known) {
            Some("disable") => Ok(SslMode::Disable),
            Some("prefer") => Ok(SslMode::Prefer),
            Some("require" | "verify-ca" | "verify-full") => Ok(SslMode::Require),
            Some(other) => Err(StoreError::Conflict(format!(
                "the address of the record says sslmode={other}; known are disable, prefer, require, verify-ca and verify-full"
            ))),
            None if self.root.is_none() && stays_here(config) => Ok(SslMode::Disable),
            None => Ok(SslMode::Require),
        }
    }
}

/// Takes out of an address what is ours to understand.
fn split(url: &str) -> (Cow<'_, str>, Wishes) {
    let mut wishes = Wishes::default();
    let scheme = ["postgres://", "postgresql://"].iter().find(|scheme| url.starts_with(**scheme));
    let Some(rest) = scheme.map(|scheme| &url[scheme.len()..]) else { return (url.into(), wishes) };
    // A request mark in a password asks nothing.
    let place = rest.find('@').unwrap_or(0);
    let Some(mark) = rest[place..].find('?').map(|mark| url.len() - rest.len() + place + mark) else { return (url.into(), wishes) };
    let others = url[mark + 1..].split('&').filter(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => wishes.mode = Some(value()),
            // The certificates of the machine have this name elsewhere too.
            "sslrootcert" => wishes.root = Some(value()).filter(|file| file != "system").map(PathBuf::from),
            _ => return true,
        }
        false
    });
    let others: Vec<&str> = others.collect();
    let rest = if others.is_empty() { url[..mark].into() } else { format!("{}?{}", &url[..mark], others.join("&")).into() };
    (rest, wishes)
}

/// Whether all of its hosts are this machine.
fn stays_here(config: &Config) -> bool {
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
