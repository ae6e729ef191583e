//! The course of a login: what is known of it, when it is renewed, and when a person is asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::Timestamp;
use helve_fetch::{HeaderValue, Url};
use parking_lot::MutexGuard;
use tokio::sync::OwnedSemaphorePermit;

use super::Inner;
use super::authorise::{Ask, accept};
use super::challenge::Challenge;
use super::discover::{Found, discover};
use super::error::AuthError;
use super::listener::{Listener, Return};
use super::register::{self, recall};
use super::scopes::{Scopes, Wish};
use super::store::{Client, Login, Origin};
use super::token::{self, Purchase};

/// So many logins are asked for within [`WINDOW`]. Whoever wants more will not be content with the next one either.
const MOST_LOGINS: usize = 3;
const WINDOW: Duration = Duration::from_mins(10);
/// A renewed token that is refused this soon is not refused for its age.
const SOON: Duration = Duration::from_mins(1);
/// When the issuer is away, calls go on with the token they have and do not all wait for it.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

/// What is known between two requests.
#[derive(Default)]
pub(super) struct State {
    loaded: bool,
    login: Option<Login>,
    /// Whether the store could not keep the login, so that what it has is older.
    unsaved: bool,
    /// Whether a person was asked by this process, and the login is what they agreed to.
    asked: bool,
    renewed: Option<Instant>,
    not_renewed: Option<Instant>,
    logins: Vec<Instant>,
    failed: Option<(Instant, AuthError)>,
}

/// The right to renew and to ask.
type Turn = Option<OwnedSemaphorePermit>;

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn login(&self) -> Option<Login> {
        self.state().login.clone()
    }

    /// The header at hand, and whether it should be renewed and can be.
    pub(super) fn current(&self) -> Option<(HeaderValue, bool)> {
        let state = self.state();
        let login = state.login.as_ref()?;
        let old = login.tokens.as_ref().is_some_and(|tokens| tokens.is_old(Timestamp::now()));
        let waits = state.not_renewed.is_some_and(|at| at.elapsed() < AFTER_FAILURE);
        Some((login.header()?, old && !waits && login.refresh().is_some()))
    }

    pub(super) async fn load_once(&self) {
        let loaded = self.state().loaded;
        if !loaded {
            self.load().await;
        }
    }

    /// Reads what is kept: another process may have renewed it, and a token is often renewed only once.
    pub(super) async fn load(&self) {
        let kept = self.options.store.load(&self.key).await;
        let mut state = self.state();
        state.loaded = true;
        match kept {
            _ if state.unsaved => {}
            Err(error) => tracing::warn!(server = self.exchange.guard.server(), error, "the kept login cannot be read"),
            Ok(document) => {
                let login = document.and_then(|document| Login::read(&document)).and_then(|login| recall(login, &self.options));
                self.exchange.hide(login.iter().flat_map(Login::secrets));
                let header = |login: &Option<Login>| login.as_ref().and_then(Login::header);
                if header(&login) != header(&state.login) {
                    (state.asked, state.renewed, state.not_renewed) = (false, None, None);
                }
                state.login = login;
            }
        }
    }

    async fn keep(&self, login: Login) {
        let document = login.write();
        self.state().login = Some(login);
        let saved = match document {
            Some(document) => self.options.store.save(&self.key, document).await,
            None => Err("it cannot be written as JSON".to_owned()),
        };
        if let Err(error) = &saved {
            tracing::warn!(server = self.exchange.guard.server(), error, "the login cannot be kept, and is lost when this ends");
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

    /// Renews a login, and gives the turn back.
    pub(super) async fn renew(self: &Arc<Self>, login: Login, turn: Turn) -> (Result<HeaderValue, AuthError>, Turn) {
        let inner = self.clone();
        // Most issuers take a refresh token only once. So this goes on without its caller, and keeps its turn: a call
        // that is cancelled here must not lose the new one, nor may the next one use the old one again. It ends by
        // itself when the exchange does.
        let task = tokio::spawn(async move { (inner.renew_now(login).await, turn) });
        task.await.unwrap_or_else(|error| (Err(AuthError::System { reason: error.to_string() }), None))
    }

    async fn renew_now(&self, mut login: Login) -> Result<HeaderValue, AuthError> {
        match token::refresh(&self.exchange, &login).await {
            Ok(tokens) => {
                let header = tokens.header();
                login.tokens = Some(tokens);
                self.state().renewed = Some(Instant::now());
                self.keep(login).await;
                header.ok_or_else(|| AuthError::System { reason: "the token does not fit into a header".to_owned() })
            }
            Err(error) => {
                // Another process may have been faster, and the refresh token is refused because it was used.
                self.load().await;
                if let Some((header, _)) = self.current().filter(|(header, _)| Some(header) != login.header().as_ref()) {
                    return Ok(header);
                }
                self.state().not_renewed = Some(Instant::now());
                if let AuthError::Refused { code, .. } = &error {
                    self.state().asked &= !is_unknown_client(code);
                    if is_unknown_client(code) || code == "invalid_grant" {
                        login.tokens.iter_mut().for_each(|tokens| tokens.refresh = None);
                        self.keep(login).await;
                    }
                }
                Err(error)
            }
        }
    }

    /// Answers a challenge: by renewing, else by asking.
    pub(super) async fn settle(self: &Arc<Self>, status: u16, challenge: &Challenge, turn: Turn) -> Result<HeaderValue, AuthError> {
        let invalid = status == 401 || challenge.error.as_deref() == Some("invalid_token");
        let wants_more = challenge.wants_more() || (!invalid && !challenge.scopes.is_empty());
        let login = self.login();
        let (asked, just_renewed) = {
            let state = self.state();
            (state.asked, state.renewed.is_some_and(|at| at.elapsed() < SOON))
        };
        // What a person did not agree to a moment ago they are not asked again.
        let agreed = asked && login.as_ref().is_some_and(|login| challenge.scopes.are_in(&login.scopes));
        if (!invalid && !wants_more) || (wants_more && agreed) {
            return Err(AuthError::Forbidden { server: self.exchange.guard.server().to_owned(), scopes: challenge.scopes.clone() });
        }
        let known = self.options.client.as_ref().map(|client| client.issuer.as_str());
        let prefer: Vec<&str> = known.into_iter().chain(login.as_ref().map(|login| login.issuer.as_str())).collect();
        // Also where there is a login: the server may have moved to another issuer, and nothing of the old one goes there.
        let found = discover(&self.exchange, &self.server, challenge, &prefer).await?;
        let mut turn = turn;
        let is_same = |login: &Login| login.issuer == found.issuer.name && login.resource == found.resource;
        if let Some(login) = login.filter(|login| is_same(login) && login.refresh().is_some() && !wants_more && !just_renewed) {
            let (renewed, back) = self.renew(login, turn).await;
            turn = back;
            match renewed {
                Err(AuthError::Refused { code, .. }) if is_final(&code) => {}
                renewed => return renewed,
            }
        }
        let header = self.ask(&found, challenge).await;
        drop(turn);
        header
    }

    /// Asks a person to log in.
    async fn ask(&self, found: &Found, challenge: &Challenge) -> Result<HeaderValue, AuthError> {
        let server = self.exchange.guard.server();
        if self.options.browser.is_none() {
            return Err(AuthError::LoginNeeded { server: server.to_owned() });
        }
        self.count_login()?;
        let before = self.login().filter(|login| login.issuer == found.issuer.name);
        // A registration that worked a moment ago works again. An older one may be gone, and the person would only see
        // an error page.
        let asked = self.state().asked;
        let client = before.as_ref().map(|login| &login.client).filter(|_| asked);
        let listener = Listener::bind(&self.ports(client)).await?;
        let client = register::client(&self.exchange, &self.options, &found.issuer, client, listener.redirect_uri()).await?;
        let scopes = Scopes::choose(&Wish {
            configured: &self.options.scopes,
            challenged: &challenge.scopes,
            listed: &found.scopes,
            before: before.as_ref().map_or(&Scopes::default(), |login| &login.scopes),
            issuer: &found.issuer.scopes,
        });
        let result = self.log_in(found, client, scopes, &listener).await;
        let unknown = matches!(&result, Err(AuthError::Refused { code, .. }) if is_unknown_client(code));
        if unknown || matches!(result, Err(AuthError::Unanswered { .. })) {
            self.state().asked = false;
        }
        result
    }

    async fn log_in(&self, found: &Found, client: Client, scopes: Scopes, listener: &Listener) -> Result<HeaderValue, AuthError> {
        let ask = Ask::new()?;
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
        let tokens = token::redeem(&self.exchange, &login, &Purchase { code: &code, verifier: &ask.verifier }).await?;
        let header = tokens.header().ok_or_else(|| AuthError::answer(&login.issuer, "its token does not fit into a header"))?;
        login.tokens = Some(tokens);
        {
            let mut state = self.state();
            (state.asked, state.renewed, state.not_renewed) = (true, None, None);
        }
        self.keep(login).await;
        Ok(header)
    }

    /// Opens the address, and waits for the browser to come back.
    async fn wait(&self, listener: &Listener, ask: &Ask, url: &Url, found: &Found) -> Result<Return, AuthError> {
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
        let late = |_| Err(AuthError::Unanswered { issuer: found.issuer.name.clone() });
        tokio::time::timeout(self.options.patience, back).await.unwrap_or_else(late)
    }

    fn ports(&self, before: Option<&Client>) -> Vec<u16> {
        if self.options.callback_port != 0 {
            return vec![self.options.callback_port];
        }
        let registered = before.filter(|client| client.origin == Origin::Registered);
        registered.and_then(|client| Listener::port_of(&client.redirect_uri)).into_iter().chain([0]).collect()
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

/// Whether an issuer that says so will say so again.
fn is_final(code: &str) -> bool {
    !matches!(code, "" | "server_error" | "temporarily_unavailable" | "slow_down")
}

fn is_unknown_client(code: &str) -> bool {
    matches!(code, "invalid_client" | "unauthorized_client")
}
