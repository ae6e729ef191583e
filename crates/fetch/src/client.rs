//! The reqwest clients of [`Fetch`](crate::Fetch): one for each [`Reach`], so that requests with a different reach never share a
//! connection.

use std::sync::Arc;

use reqwest::Client;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::address::Reach;
use crate::fetch::FetchOptions;
use crate::lookup::CheckedLookup;

/// Maximum number of headers in a response.
pub(crate) const MAX_HEADERS: usize = 100;
/// Maximum number of idle connections per host.
const IDLE_CONNECTIONS: usize = 8;

/// One reqwest client for each [`Reach`].
pub(crate) struct Clients {
    any: Client,
    public: Client,
    local: Client,
}

impl Clients {
    pub(crate) fn new(options: &FetchOptions) -> Result<Self, String> {
        let tls = tls().map_err(|error| error.to_string())?;
        let client = |reach| {
            let builder = Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .dns_resolver(CheckedLookup { lookup: options.lookup.clone(), reach })
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .no_proxy()
                .referer(false)
                .http1_only()
                .http1_max_headers(MAX_HEADERS)
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                .connect_timeout(options.connect_timeout)
                .user_agent(&options.user_agent);
            builder.build().map_err(|error| error.to_string())
        };
        Ok(Self { any: client(Reach::Any)?, public: client(Reach::Public)?, local: client(Reach::Local)? })
    }

    pub(crate) fn get(&self, reach: Reach) -> &Client {
        match reach {
            Reach::Any => &self.any,
            Reach::Public => &self.public,
            Reach::Local => &self.local,
        }
    }
}

/// Creates a TLS configuration that trusts the certificate authorities of this machine. The crypto provider is passed to the builder
/// and not installed for the whole process, because the process belongs to the program that embeds Helve.
pub(crate) fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    match builder()?.with_platform_verifier() {
        Ok(verified) => Ok(verified.with_no_client_auth()),
        Err(error) => {
            // A small container may have no certificate authorities. Plain HTTP still works there.
            tracing::warn!(%error, "no certificate authorities found on this machine; https requests will fail");
            Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
        }
    }
}
