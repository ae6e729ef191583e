//! Logs in to MCP servers that require OAuth 2.1.
//!
//! An [`Authorizer`] belongs to one server. It provides the `Authorization` header of requests. If the server rejects the header, the
//! authorizer refreshes the token or, if that cannot help, lets a person log in. The issuer is the OAuth authorization server. Helve
//! checks everything that a server or an issuer sends before it uses it: the origin, the URLs, and the size.

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

/// Handles the login at one server. Cheap to clone; clones share the login.
#[derive(Clone)]
pub struct Authorizer(Arc<Inner>);

struct Inner {
    server: Url,
    key: String,
    exchange: IssuerClient,
    options: AuthOptions,
    /// The permit to refresh the token or to let a person log in. Other requests wait for the permit, and use the result.
    turn: Arc<Semaphore>,
    state: Mutex<State>,
}

impl Authorizer {
    /// Creates an authorizer for the server at this URL. Does not send a request.
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

    /// Returns the `Authorization` header of the next request, or `None` if there is no login. Refreshes a token that is about to expire.
    /// Never asks a person to log in.
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
        // If the refresh fails, the server decides whether the old token is still valid.
        Some(inner.refresh(login, turn).await.0.unwrap_or(header))
    }

    /// Returns the `Authorization` header to try next, after the server responded with 401 or 403.
    ///
    /// `www_authenticate` is the `WWW-Authenticate` header of the response, with several values joined by commas. `refused` is the
    /// `Authorization` header of the request. If necessary, waits for a person to log in; dropping the future cancels the login.
    ///
    /// # Errors
    /// Returns an error if there is no other header to try. [`AuthError::LoginNeeded`] means that no browser is available for a login.
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
        // Otherwise ten waiting calls would ask a person to log in ten times, even after the person declined.
        if let Some(error) = inner.failed_since(arrived) {
            return Err(error);
        }
        let result = inner.settle(status, &Challenge::read(www_authenticate), turn).await;
        inner.remember_failure(result.as_ref().err());
        result
    }

    /// Removes the stored login and client registration.
    ///
    /// # Errors
    /// Returns an error if the store cannot remove the login.
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
