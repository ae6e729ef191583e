//! Chooses a model: the one that the user named, one whose key is in the environment, or one on a local server.

use std::fmt;
use std::time::Duration;

use helve_fetch::{Fetch, FetchLimits, Method, Reach, Request, header, read_url};
use secrecy::SecretString;
use serde_json::Value;

use crate::provider::{PROVIDERS, Provider};
use crate::wire::set_key;

/// Timeout for listing the models of a server on this machine.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(400);

/// Maximum length of a model name, in bytes. Longer names are left out of lists.
const MAX_NAME: usize = 256;

/// A model as the user names it, for example in `--model`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelSpec {
    /// A recording, by its file: `replay:file.jsonl`.
    Replay(String),
    /// A model of a provider: `openrouter/some-model`.
    Of(&'static Provider, String),
    /// A server with OpenAI's Chat Completions API: its base URL, and the model if one follows a `#`.
    At(String, Option<String>),
    /// A model that the project defines under this name.
    Named(String),
}

impl ModelSpec {
    /// Parses the name of a model. Text in no other form becomes [`ModelSpec::Named`].
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        if let Some(file) = text.strip_prefix("replay:") {
            return Self::Replay(file.to_owned());
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            let (url, model) = text.split_once('#').map_or((text, None), |(url, model)| (url, Some(model.to_owned())));
            return Self::At(url.to_owned(), model);
        }
        if let Some((provider, model)) = text.split_once('/')
            && let Some(provider) = Provider::named(provider)
            && !model.is_empty()
        {
            return Self::Of(provider, model.to_owned());
        }
        Self::Named(text.to_owned())
    }
}

/// A model that Helve found without configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundModel {
    /// The provider of the model.
    pub provider: &'static Provider,
    /// The name of the model.
    pub model: String,
    /// How Helve found the model.
    pub origin: ModelOrigin,
}

/// How Helve found a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelOrigin {
    /// This environment variable contains an API key.
    Key(&'static str),
    /// A server on this machine responds at this URL.
    Server(&'static str),
}

impl fmt::Display for FoundModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider.name, self.model)?;
        match self.origin {
            ModelOrigin::Key(name) => write!(f, " (because {name} is set)"),
            ModelOrigin::Server(url) => write!(f, " (because a server responds at {url})"),
        }
    }
}

/// Returns the API key of a provider and the environment variable that contains it, or `None` if no such variable is set.
#[must_use]
pub fn key_in_environment(provider: &Provider) -> Option<(&'static str, SecretString)> {
    provider.keys.iter().find_map(|name| {
        let key = helve_core::environment::var(name).filter(|key| !key.trim().is_empty())?;
        Some((*name, key.trim().to_owned().into()))
    })
}

/// Finds a model without configuration: the default model of the first provider whose key is in the environment, else the first
/// model of a server on this machine. With `local_only`, looks only for servers on this machine.
pub async fn find(fetch: &Fetch, local_only: bool) -> Option<FoundModel> {
    if !local_only {
        for provider in PROVIDERS.iter().filter(|provider| !provider.default_model.is_empty()) {
            if let Some((name, _)) = key_in_environment(provider) {
                return Some(FoundModel { provider, model: provider.default_model.to_owned(), origin: ModelOrigin::Key(name) });
            }
        }
    }
    find_local(fetch).await.into_iter().next()
}

/// Finds servers on this machine that respond, and returns the first model of each.
pub async fn find_local(fetch: &Fetch) -> Vec<FoundModel> {
    let looks = PROVIDERS.iter().filter(|provider| provider.local).map(|provider| async move {
        let models = list(fetch, provider.base_url, None, Reach::Local, LOCAL_TIMEOUT).await.ok()?;
        let model = models.into_iter().next()?;
        Some(FoundModel { provider, model, origin: ModelOrigin::Server(provider.base_url) })
    });
    futures_util::future::join_all(looks).await.into_iter().flatten().collect()
}

/// Returns the names of the models that a server offers.
///
/// # Errors
/// Returns an error message if the request fails or the response is not a list of models.
pub async fn list(
    fetch: &Fetch,
    base_url: &str,
    key: Option<&SecretString>,
    reach: Reach,
    timeout: Duration,
) -> Result<Vec<String>, String> {
    let url = read_url(&format!("{}/models", base_url.trim_end_matches('/'))).map_err(|error| error.to_string())?;
    let mut request = Request::new(Method::GET, url);
    request.reach = reach;
    request.limits = FetchLimits { time: timeout, bytes: 4 << 20, redirects: 0 };
    set_key(header::AUTHORIZATION, "Bearer ", key, &mut request.headers);
    let response = fetch.send(request).await.map_err(|error| error.to_string())?;
    if !response.status.is_success() {
        return Err(format!("HTTP status {}", response.status.as_u16()));
    }
    let value: Value = serde_json::from_slice(&response.body).map_err(|error| error.to_string())?;
    let models =
        value.get("data").or_else(|| value.get("models")).and_then(Value::as_array).ok_or("the response is not a list of models")?;
    let name = |model: &Value| ["id", "name"].iter().find_map(|key| model.get(*key)?.as_str()).map(ToOwned::to_owned);
    let usable = |name: &String| name.len() <= MAX_NAME && !name.contains(helve_core::printable::is_deceptive);
    Ok(models.iter().filter_map(name).filter(usable).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read() {
        let of = |text: &str| match ModelSpec::read(text) {
            ModelSpec::Of(provider, model) => format!("{} {model}", provider.name),
            other => format!("{other:?}"),
        };
        assert_eq!(of("openrouter/google/gemini-2.5-flash"), "openrouter google/gemini-2.5-flash");
        assert_eq!(of("llama.cpp/qwen"), "llamacpp qwen");
        assert_eq!(of("replay:a.jsonl"), "Replay(\"a.jsonl\")");
        assert_eq!(of("http://127.0.0.1:8080/v1#m"), "At(\"http://127.0.0.1:8080/v1\", Some(\"m\"))");
        assert_eq!(of("house"), "Named(\"house\")");
        assert_eq!(of("nobody/model"), "Named(\"nobody/model\")");
    }
}
