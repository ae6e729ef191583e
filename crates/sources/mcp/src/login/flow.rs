//! The state of a login, and when Helve refreshes the token or asks a person to log in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::Timestamp;
use helve_fetch::{HeaderValue, Url};
use parking_lot::MutexGuard;
use tokio::sync::OwnedSemaphorePermit;

use super::Inner;
use super::authorization::{AuthorizationRequest, accept};
use super::callback::{Callback, CallbackListener};
use super::challenge::Challenge;
use super::discovery::{Discovery, discover};
use super::error::AuthError;
use super::registration::{self, recall};
use super::scopes::{ScopeSources, Scopes};
use super::store::{Client, ClientOrigin, Login};
use super::token::{self, CodeGrant};

/// Maximum number of logins within [`WINDOW`]. A server that requires more would not accept the next one either.
const MOST_LOGINS: usize = 3;
const WINDOW: Duration = Duration::from_mins(10);
/// Time after a refresh in which the token is not refreshed again. If the server rejects the token so soon, the token is not too old.
const SOON: Duration = Duration::from_mins(1);
/// Delay between a failed refresh and the next one. In the meantime, requests use the old token.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

/// The state of a login between two requests.
#[derive(Default)]
pub(super) struct State {
    loaded: bool,
    login: Option<Login>,
    /// Whether the last save failed, so that the login in the store is out of date.
    unsaved: bool,
    /// Whether a person logged in during this process.
    granted: bool,
    refreshed: Option<Instant>,
    not_refreshed: Option<Instant>,
    logins: Vec<Instant>,
    failed: Option<(Instant, AuthError)>,
}

/// The permit to refresh the token or to ask a person to log in.
type Turn = Option<OwnedSemaphorePermit>;

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn login(&self) -> Option<Login> {
        self.state().login.clone()
    }

    /// Returns the current header, and whether its token should and can be refreshed.
    pub(super) fn current(&self) -> Option<(HeaderValue, bool)> {
        let state = self.state();
        let login = state.login.as_ref()?;
        let old = login.tokens.as_ref().is_some_and(|tokens| tokens.is_old(Timestamp::now()));
        let waits = state.not_refreshed.is_some_and(|at| at.elapsed() < AFTER_FAILURE);
        Some((login.header()?, old && !waits && login.refresh().is_some()))
    }

    pub(super) async fn load_once(&self) {
        let loaded = self.state().loaded;
        if !loaded {
            self.load().await;
        }
    }

    /// Loads the stored login. Another process may have refreshed the token, and most refresh tokens work only once.
    pub(super) async fn load(&self) {
        let stored = self.options.store.load(&self.key).await;
        let mut state = self.state();
        state.loaded = true;
        match stored {
            _ if state.unsaved => {}
            Err(error) => tracing::warn!(server = self.exchange.guard.server(), error, "the stored login cannot be read"),
            Ok(document) => {
                let login = document.and_then(|document| Login::read(&document)).and_then(|login| recall(login, &self.options));
                self.exchange.hide(login.iter().flat_map(Login::secrets));
                let header = |login: &Option<Login>| login.as_ref().and_then(Login::header);
                if header(&login) != header(&state.login) {
                    (state.granted, state.refreshed, state.not_refreshed) = (false, None, None);
                }
                state.login = login;
            }
        }
    }

    async fn save(&self, login: Login) {
        let document = login.write();
        self.state().login = Some(login);
        let saved = match document {
            Some(document) => self.options.store.save(&self.key, document).await,
            None => Err("it cannot be written as JSON".to_owned()),
        };
        if let Err(error) = &saved {
            tracing::warn!(server = self.exchange.guard.server(), error, "the login cannot be saved and is lost when the process ends");
        }
        self.state().unsaved = saved.is_err();
    }

    pub(super) async fn forget(&self) -> Result<(), String> {
        *self.state() = State { loaded: true, ..State::default() };
        self.options.store.remove(&self.key).await
    }

    pub(super) fn failed_since(&self, arrived: Instant) -> Option<AuthError> {
        self.state().failed.as_ref().filter(|(at, _)| *at >= arrived).map(|(_, error)| error.clone())
    }

    pub(super) fn remember_failure(&self, error: Option<&AuthError>) {
        self.state().failed = error.map(|error| (Instant::now(), error.clone()));
    }

    /// Refreshes the token of a login. Returns the new header and the permit.
    pub(super) async fn refresh(self: &Arc<Self>, login: Login, turn: Turn) -> (Result<HeaderValue, AuthError>, Turn) {
        let inner = self.clone();
        // Most issuers accept a refresh token only once. So the refresh runs in its own task and keeps the permit: a cancelled call must
        // not lose the new token, and the next call must not use the old refresh token again.
        let task = tokio::spawn(async move { (inner.refresh_now(login).await, turn) });
        task.await.unwrap_or_else(|error| (Err(AuthError::System { reason: error.to_string() }), None))
    }

    async fn refresh_now(&self, mut login: Login) -> Result<HeaderValue, AuthError> {
        match token::refresh(&self.exchange, &login).await {
            Ok(tokens) => {
                let header = tokens.header();
                login.tokens = Some(tokens);
                self.state().refreshed = Some(Instant::now());
                self.save(login).await;
                header.ok_or_else(|| AuthError::System { reason: "the token is not a valid header value".to_owned() })
            }
            Err(error) => {
                // Another process may have used the refresh token first.
                self.load().await;
                if let Some((header, _)) = self.current().filter(|(header, _)| Some(header) != login.header().as_ref()) {
                    return Ok(header);
                }
                self.state().not_refreshed = Some(Instant::now());
                if let AuthError::Refused { code, .. } = &error {
                    self.state().granted &= !is_unknown_client(code);
                    if is_unknown_client(code) || code == "invalid_grant" {
                        login.tokens.iter_mut().for_each(|tokens| tokens.refresh = None);
                        self.save(login).await;
                    }
                }
                Err(error)
            }
        }
    }

    /// Resolves a challenge by refreshing the token or, if that does not help, by asking a person to log in.
    pub(super) async fn settle(self: &Arc<Self>, status: u16, challenge: &Challenge, turn: Turn) -> Result<HeaderValue, AuthError> {
        let invalid = status == 401 || challenge.error.as_deref() == Some("invalid_token");
        let wants_more = challenge.wants_more() || (!invalid && !challenge.scopes.is_empty());
        let login = self.login();
        let (granted, just_refreshed) = {
            let state = self.state();
            (state.granted, state.refreshed.is_some_and(|at| at.elapsed() < SOON))
        };
        // Does not ask a person again for a scope that the login already requested.
        let refused_before = granted && login.as_ref().is_some_and(|login| challenge.scopes.are_in(&login.scopes));
        if (!invalid && !wants_more) || (wants_more && refused_before) {
            return Err(AuthError::Forbidden { server: self.exchange.guard.server().to_owned(), scopes: challenge.scopes.clone() });
        }
        let known = self.options.client.as_ref().map(|client| client.issuer.as_str());
        let prefer: Vec<&str> = known.into_iter().chain(login.as_ref().map(|login| login.issuer.as_str())).collect();
        // Runs even with a login: the server may have moved to another issuer, which must not see any data of the old one.
        let found = discover(&self.exchange, &self.server, challenge, &prefer).await?;
        let mut turn = turn;
        let is_same = |login: &Login| login.issuer == found.issuer.name && login.resource == found.resource;
        if let Some(login) = login.filter(|login| is_same(login) && login.refresh().is_some() && !wants_more && !just_refreshed) {
            let (refreshed, back) = self.refresh(login, turn).await;
            turn = back;
            match refreshed {
                Err(AuthError::Refused { code, .. }) if is_final(&code) => {}
                refreshed => return refreshed,
            }
        }
        let header = self.ask(&found, challenge).await;
        drop(turn);
        header
    }

    /// Asks a person to log in. Returns the new header.
    async fn ask(&self, found: &Discovery, challenge: &Challenge) -> Result<HeaderValue, AuthError> {
        let server = self.exchange.guard.server();
        if self.options.browser.is_none() {
            return Err(AuthError::LoginNeeded { server: server.to_owned() });
        }
        self.count_login()?;
        let before = self.login().filter(|login| login.issuer == found.issuer.name);
        // Reuses only a registration that worked in this process. The issuer may have removed an older one, and the person would see an
        // error page.
        let granted = self.state().granted;
        let client = before.as_ref().map(|login| &login.client).filter(|_| granted);
        let listener = CallbackListener::bind(&self.ports(client)).await?;
        let client = registration::client(&self.exchange, &self.options, &found.issuer, client, listener.redirect_uri()).await?;
        let scopes = Scopes::choose(&ScopeSources {
            configured: &self.options.scopes,
            challenged: &challenge.scopes,
            listed: &found.scopes,
            before: before.as_ref().map_or(&Scopes::default(), |login| &login.scopes),
            issuer: &found.issuer.scopes,
        });
        let result = self.log_in(found, client, scopes, &listener).await;
        let unknown = matches!(&result, Err(AuthError::Refused { code, .. }) if is_unknown_client(code));
        if unknown || matches!(result, Err(AuthError::TimedOut { .. })) {
            self.state().granted = false;
        }
        result
    }

    async fn log_in(
        &self,
        found: &Discovery,
        client: Client,
        scopes: Scopes,
        listener: &CallbackListener,
    ) -> Result<HeaderValue, AuthError> {
        let ask = AuthorizationRequest::new()?;
        self.exchange.hide([ask.verifier.clone()]);
        let returned = self.wait(listener, &ask, &ask.url(found, &client, &scopes), found).await?;
        let code = accept(&self.exchange, &found.issuer, returned)?;
        let mut login = Login {
            issuer: found.issuer.name.clone(),
            resource: found.resource.clone(),
            token_endpoint: found.issuer.token.to_string(),
            client,
            tokens: None,
            scopes,
        };
        let tokens = token::redeem(&self.exchange, &login, &CodeGrant { code: &code, verifier: &ask.verifier }).await?;
        let header = tokens.header().ok_or_else(|| AuthError::response(&login.issuer, "the token is not a valid header value"))?;
        login.tokens = Some(tokens);
        {
            let mut state = self.state();
            (state.granted, state.refreshed, state.not_refreshed) = (true, None, None);
        }
        self.save(login).await;
        Ok(header)
    }

    /// Opens the login page, and waits for the callback.
    async fn wait(
        &self,
        listener: &CallbackListener,
        ask: &AuthorizationRequest,
        url: &Url,
        found: &Discovery,
    ) -> Result<Callback, AuthError> {
        let Some(browser) = &self.options.browser else {
            return Err(AuthError::LoginNeeded { server: self.exchange.guard.server().to_owned() });
        };
        let back = async {
            let mut waiting = std::pin::pin!(listener.wait(&ask.state));
            tokio::select! {
                returned = &mut waiting => return Ok(returned),
                opened = browser.open(url) => opened.map_err(AuthError::browser)?,
            }
            Ok(waiting.await)
        };
        let late = |_| Err(AuthError::TimedOut { issuer: found.issuer.name.clone() });
        tokio::time::timeout(self.options.patience, back).await.unwrap_or_else(late)
    }

    fn ports(&self, before: Option<&Client>) -> Vec<u16> {
        if self.options.callback_port != 0 {
            return vec![self.options.callback_port];
        }
        let registered = before.filter(|client| client.origin == ClientOrigin::Registered);
        registered.and_then(|client| CallbackListener::port_of(&client.redirect_uri)).into_iter().chain([0]).collect()
    }

    fn count_login(&self) -> Result<(), AuthError> {
        let mut state = self.state();
        state.logins.retain(|at| at.elapsed() < WINDOW);
        if state.logins.len() >= MOST_LOGINS {
            return Err(AuthError::TooOften { server: self.exchange.guard.server().to_owned() });
        }
        state.logins.push(Instant::now());
        Ok(())
    }
}

/// Returns whether a retry would fail with the same OAuth error code.
fn is_final(code: &str) -> bool {
    !matches!(code, "" | "server_error" | "temporarily_unavailable" | "slow_down")
}

fn is_unknown_client(code: &str) -> bool {
    matches!(code, "invalid_client" | "unauthorized_client")
}
