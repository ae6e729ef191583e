//! OAuth 2.1 for servers that want to know on whose behalf Helve asks.
//!
//! An [`Authorizer`] belongs to one server. It gives the header that goes with requests, and a new one when the server
//! refuses the old: renewed without anybody noticing where that can help, else after a person logged in. Everything a
//! server or an issuer says is checked before it is used: whose it is, where it leads, and how much of it there is.

mod address;
mod authorise;
mod browser;
mod challenge;
mod discover;
mod error;
mod exchange;
mod listener;
mod login;
mod options;
mod register;
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
pub use options::{AuthOptions, KnownClient};
pub use scopes::Scopes;
pub use store::{MemoryStore, TokenStore};

use address::Guard;
use challenge::Challenge;
use exchange::Exchange;
use login::State;

/// The logins of one server. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct Authorizer(Arc<Inner>);

struct Inner {
    server: Url,
    key: String,
    exchange: Exchange,
    options: AuthOptions,
    /// Whoever holds it renews or asks; the others wait and take what came.
    turn: Arc<Semaphore>,
    state: Mutex<State>,
}

impl Authorizer {
    /// An authorizer for the server at this address. Nothing is sent before it is needed.
    #[must_use]
    pub fn new(server: &Url, fetch: Fetch, redactor: Redactor, options: AuthOptions) -> Self {
        let mut server = server.clone();
        server.set_fragment(None);
        let known = options.client.as_ref();
        redactor.add(known.and_then(|client| client.secret.clone()));
        let guard = Guard::new(&server, known.map(|client| client.issuer.as_str()));
        Self(Arc::new(Inner {
            key: server.to_string(),
            server,
            exchange: Exchange { fetch, redactor, guard },
            options,
            turn: Arc::new(Semaphore::new(1)),
            state: Mutex::default(),
        }))
    }

    /// The `Authorization` header for the next request; nothing where there was no login. A token that is about to
    /// expire is renewed first. Nobody is ever asked here.
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
        // If that fails, the server is the judge of the old one.
        Some(inner.renew(login, turn).await.0.unwrap_or(header))
    }

    /// The header to try instead, after the server answered 401 or 403.
    ///
    /// `www_authenticate` is that header of the answer, several lines of it joined by commas, and `refused` the
    /// `Authorization` header that the request had. Waits for the person if it must; who drops the future gives up the
    /// login.
    ///
    /// # Errors
    /// Where there is no better header. [`AuthError::LoginNeeded`] says that there is nobody to ask.
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
        // Of ten calls that wait for one login, nine would ask a person who just said no.
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
    /// A sentence of the store that says why it still has it.
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
