//! Resolves host names and checks the addresses. Connections use only addresses that were checked, which prevents DNS rebinding.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{Reach, Refusal, is_local_name};
use crate::networks::is_public;

/// A DNS resolver.
pub trait Lookup: Send + Sync + 'static {
    /// Returns all IP addresses of a host name.
    ///
    /// # Errors
    /// Returns an error if the name does not exist or cannot be resolved.
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// A resolver that fails unless `reach` allows all addresses of the name.
pub(crate) struct CheckedLookup {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) reach: Reach,
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, reach) = (self.lookup.clone(), self.reach);
        Box::pin(async move {
            let addresses = resolve(&*lookup, name.as_str(), reach).await?;
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// Returns the addresses of a host name if `reach` allows all of them, else a [`Refusal`].
pub(crate) async fn resolve(lookup: &dyn Lookup, host: &str, reach: Reach) -> Result<Vec<IpAddr>, Box<dyn Error + Send + Sync>> {
    if reach == Reach::Public && is_local_name(host) {
        return Err(Refusal::LocalName(host.to_owned()).into());
    }
    let addresses = lookup.lookup(host).await.map_err(|error| io::Error::new(error.kind(), format!("DNS lookup failed: {error}")))?;
    // An attacker can mix one private address with public ones to get past a guard that checks only the first.
    if reach == Reach::Public && !addresses.iter().all(|address| is_public(*address)) {
        return Err(Refusal::NotPublic(host.to_owned()).into());
    }
    if reach == Reach::Local && !addresses.iter().all(IpAddr::is_loopback) {
        return Err(Refusal::NotLocal(host.to_owned()).into());
    }
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "DNS lookup failed: the name has no addresses").into());
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Answers in turn, as a name with a short life does.
    struct Answers(Mutex<Vec<Vec<&'static str>>>);

    impl Lookup for Answers {
        fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let next = self.0.lock().expect("a lock").remove(0);
            Box::pin(async move { Ok(next.iter().map(|text| text.parse().expect("an address")).collect()) })
        }
    }

    async fn resolve(checked: &CheckedLookup) -> Result<Vec<String>, String> {
        let name: Name = "name.example".parse().expect("a name");
        let addresses = checked.resolve(name).await.map_err(|error| error.to_string())?;
        Ok(addresses.map(|address| address.ip().to_string()).collect())
    }

    /// Security cases S18 and S19.
    #[tokio::test]
    async fn every_address_of_a_name_must_be_public_every_time() {
        let answers = vec![vec!["8.8.8.8", "2606:4700::1111"], vec!["127.0.0.1"], vec!["8.8.8.8", "10.0.0.1"], vec!["10.0.0.1"], vec![]];
        let checked = CheckedLookup { lookup: Arc::new(Answers(Mutex::new(answers))), reach: Reach::Public };
        assert_eq!(resolve(&checked).await, Ok(vec!["8.8.8.8".to_owned(), "2606:4700::1111".to_owned()]));
        for _ in 0..3 {
            assert_eq!(
                resolve(&checked).await,
                Err("`name.example` resolves to an address that is not public; only public addresses are allowed".to_owned())
            );
        }
        assert_eq!(resolve(&checked).await, Err("DNS lookup failed: the name has no addresses".to_owned()));
    }

    #[tokio::test]
    async fn the_operator_may_name_any_host() {
        let checked = CheckedLookup { lookup: Arc::new(Answers(Mutex::new(vec![vec!["10.0.0.1"]]))), reach: Reach::Any };
        assert_eq!(resolve(&checked).await, Ok(vec!["10.0.0.1".to_owned()]));
    }
}
