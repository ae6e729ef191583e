//! The URL of a server, and what every HTTP request to this URL needs: headers and, if the server requires it, a login.

use std::time::Duration;

use helve_fetch::{
    ConnectionPool, Exchange, FetchError, HeaderMap, HeaderValue, Reach, StreamLimits, StreamingResponse, Target, Url, header,
};

use crate::client::error::RequestError;
use crate::login::Authorizer;

/// Maximum number of logins that a server may demand for one request.
const MAX_CHALLENGES: usize = 8;

/// The URL of a server, with the headers and the login for requests to it.
pub(crate) struct Site {
    url: Url,
    headers: HeaderMap,
    reach: Reach,
    target: Target,
    connections: ConnectionPool,
    /// Logs in if the server requires it; `None` if the headers contain credentials.
    authorizer: Option<Authorizer>,
    /// Time added to the timeout of a request, because a person may have to log in.
    pub(crate) slack: Duration,
}

impl Site {
    pub(crate) fn new(
        url: &Url,
        headers: &HeaderMap,
        reach: Reach,
        connections: &ConnectionPool,
        authorizer: Option<Authorizer>,
    ) -> Result<Self, FetchError> {
        let mut headers = headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let target = connections.target(url, &headers, reach)?;
        Ok(Self { url: url.clone(), headers, reach, target, connections: connections.clone(), authorizer, slack: Duration::ZERO })
    }

    /// Creates a site for another URL that the server named, absolute or relative. Rejects a URL of another origin, because the headers may
    /// contain credentials.
    pub(super) fn join(&self, path: &str) -> Result<Self, RequestError> {
        let wrong = |why: &dyn std::fmt::Display| RequestError::Protocol(format!("the server sent a URL that cannot be used: {why}"));
        let url = self.url.join(path).map_err(|error| wrong(&error))?;
        if url.origin() != self.url.origin() {
            return Err(wrong(&"the URL has another origin"));
        }
        let site = Self::new(&url, &self.headers, self.reach, &self.connections, self.authorizer.clone()).map_err(|error| wrong(&error))?;
        Ok(Self { slack: self.slack, ..site })
    }

    /// Sends a request. Logs in first if the server requires it.
    pub(super) async fn send(&self, exchange: Exchange, patience: StreamLimits) -> Result<StreamingResponse, RequestError> {
        match &self.authorizer {
            Some(authorizer) => Box::pin(self.send_authorized(authorizer, exchange, patience)).await,
            None => Ok(Box::pin(self.connections.send(&self.target, &exchange, patience)).await?),
        }
    }

    async fn send_authorized(
        &self,
        authorizer: &Authorizer,
        mut exchange: Exchange,
        patience: StreamLimits,
    ) -> Result<StreamingResponse, RequestError> {
        let mut sent = authorizer.header().await;
        for _ in 0..MAX_CHALLENGES {
            if let Some(header) = &sent {
                exchange.headers.insert(header::AUTHORIZATION, header.clone());
            }
            let response = self.connections.send(&self.target, &exchange, patience).await?;
            let challenges = response.headers.get_all(header::WWW_AUTHENTICATE);
            let challenges: Vec<&str> = challenges.iter().filter_map(|challenge| challenge.to_str().ok()).collect();
            let status = response.status.as_u16();
            // A 403 without a challenge has another reason, so a login would not help.
            if status != 401 && (status != 403 || challenges.is_empty()) {
                return Ok(response);
            }
            let challenge = (!challenges.is_empty()).then(|| challenges.join(", "));
            let login = authorizer.challenged(status, challenge.as_deref(), sent.as_ref()).await;
            sent = Some(login.map_err(|error| RequestError::LoginRequired(error.to_string()))?);
        }
        Err(RequestError::LoginRequired("the server rejects every login".to_owned()))
    }
}
