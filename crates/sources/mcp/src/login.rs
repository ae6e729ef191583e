//! Logins at servers that require OAuth 2.1.
//!
//! An [`Authorizer`] belongs to one server. It provides the `Authorization` header of requests, and a new one if the server refuses it: a
//! refreshed token if that can help, else one after a person has logged in. Everything a server or an issuer sends is checked before it is
//! used: its origin, its URLs, and its size.

mod address;
mod authorization;
mod browser;
mod callback;
mod challenge;
mod discovery;
mod error;
mod flow;
mod issuer_client;
mod options;
mod registration;
mod scopes;
mod store;
#[cfg(test)]
mod tests;
mod token;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use std::time::Instant;

use helve_core::Redactor;
use helve_fetch::{Fetch, HeaderValue, Url};
use tokio::sync::Semaphore;

pub use browser::{Browser, SystemBrowser};
pub use error::AuthError;
pub use options::{AuthOptions, RegisteredClient};
pub use scopes::Scopes;
pub use store::{MemoryStore, TokenStore};

use address::AddressGuard;
use challenge::Challenge;
use flow::State;
use issuer_client::IssuerClient;

/// The logins of one server. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct Authorizer(Arc<Inner>);

struct Inner {
    server: Url,
    key: String,
    exchange: IssuerClient,
    options: AuthOptions,
    /// The right to refresh and to ask a person; other requests wait, and use the result.
    turn: Arc<Semaphore>,
    state: Mutex<State>,
}

impl Authorizer {
    /// Creates an authorizer for the server at this URL. Nothing is sent yet.
    #[must_use]
    pub fn new(server: &Url, fetch: Fetch, redactor: Redactor, options: AuthOptions) -> Self {
        let mut server = server.clone();
        server.set_fragment(None);
        let known = options.client.as_ref();
        redactor.add(known.and_then(|client| client.secret.clone()));
        let guard = AddressGuard::new(&server, known.map(|client| client.issuer.as_str()));
        Self(Arc::new(Inner {
            key: server.to_string(),
            server,
            exchange: IssuerClient { fetch, redactor, guard },
            options,
            turn: Arc::new(Semaphore::new(1)),
            state: Mutex::default(),
        }))
    }

    /// The `Authorization` header of the next request; `None` without a login. A token that is about to expire is refreshed first. Never asks a
    /// person.
    pub async fn header(&self) -> Option<HeaderValue> {
        let inner = &self.0;
        inner.load_once().await;
        let (header, due) = inner.current()?;
        if !due {
            return Some(header);
        }
        let turn = inner.turn.clone().acquire_owned().await.ok();
        inner.load().await;
        let (header, due) = inner.current()?;
        let Some(login) = inner.login().filter(|_| due) else { return Some(header) };
        // If that fails, the server decides whether the old token is still good.
        Some(inner.refresh(login, turn).await.0.unwrap_or(header))
    }

    /// The header to try next, after the server responded with 401 or 403.
    ///
    /// `www_authenticate` is that header of the response, several values joined by commas, and `refused` the `Authorization` header of the
    /// request. Waits for a person if it must; dropping the future abandons the login.
    ///
    /// # Errors
    /// If there is no better header. [`AuthError::LoginNeeded`] means that there is no person to ask.
    pub async fn challenged(
        &self,
        status: u16,
        www_authenticate: Option<&str>,
        refused: Option<&HeaderValue>,
    ) -> Result<HeaderValue, AuthError> {
        let arrived = Instant::now();
        let inner = &self.0;
        let turn = inner.turn.clone().acquire_owned().await.ok();
        inner.load().await;
        if let Some((header, _)) = inner.current().filter(|(header, _)| Some(header) != refused) {
            return Ok(header);
        }
        // Without this, ten waiting calls would ask a person ten times, even after a no.
        if let Some(error) = inner.failed_since(arrived) {
            return Err(error);
        }
        let result = inner.settle(status, &Challenge::read(www_authenticate), turn).await;
        inner.remember_failure(result.as_ref().err());
        result
    }

    /// Forgets the login, and the registration with it.
    ///
    /// # Errors
    /// If the store cannot remove it.
    pub async fn forget(&self) -> Result<(), String> {
        let _turn = self.0.turn.acquire().await;
        self.0.forget().await
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("server", &self.0.exchange.guard.server()).finish_non_exhaustive()
    }
}
