//! Chooses the model: the one that the user named, the agent's, the project's, or one found by an API key or on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use helve_agent::Strategy;
use helve_core::authored::FieldError;
use helve_core::{DynModel, ModelError, suggest};
use helve_fetch::{ConnectionPool, FetchOptions, read_url};
use helve_models::{HttpModel, ModelEndpoint, ModelSpec, Price, Provider, Recorder, Replay, find, key_in_environment};
use helve_project::{Diagnostic, ModelEntry, OnDamage, Severity, StateFile, StateFolder};
use serde_json::{Map, Value};

use super::project::{LoadedProject, unknown_name};
use super::{Helve, ProjectAgent, ProjectReport};

/// The file with the strategies that worked for models.
const STRATEGIES: &str = "models.json";
const WAYS: &str = "set OPENROUTER_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY; or start a server on this machine, such as \
Ollama or llama.cpp; or set `model:` in helve.yaml; or name one with --model, such as `openrouter/some-model` or `http://127.0.0.1:8080/v1`. \
`helve demo` works without a model";

/// The user's choice of a model.
#[derive(Debug, Clone, Default, helve_core::Setters)]
pub struct ModelChoice {
    /// The model, as for `--model`: `provider/model`, a URL, a name from `helve.yaml`, or `replay:FILE`.
    pub spec: Option<String>,
    /// Whether only models on this machine may be used.
    pub local_only: bool,
    /// The file to which responses are recorded.
    pub record: Option<PathBuf>,
}

/// The model that was chosen.
pub struct ChosenModel {
    /// The model.
    pub model: Arc<dyn DynModel>,
    /// Why Helve chose this model; `None` if the user or the project named it.
    pub because: Option<String>,
    /// The call strategy that worked when the model was last used.
    pub strategy: Option<Strategy>,
    key: String,
}

/// The error if no model can be used, with a hint.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ChooseModelError {
    /// The error message.
    pub message: String,
    /// A hint what to do next.
    pub hint: String,
}

impl ChooseModelError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl From<ModelError> for ChooseModelError {
    fn from(error: ModelError) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

/// # Models of a project
impl Helve {
    /// Chooses the model: the one in `choice`, the agent's, the project's, or one that is found by an API key or on this machine. An
    /// untrusted folder cannot name a model, because the model's server would read the whole conversation.
    ///
    /// # Errors
    /// Returns an error with a hint if no model can be used.
    pub async fn model(&self, choice: &ModelChoice, agent: Option<&ProjectAgent>) -> Result<ChosenModel, ChooseModelError> {
        let report = self.project().unwrap_or_default();
        let of_environment = helve_core::environment::var("HELVE_MODEL").filter(|spec| !spec.trim().is_empty());
        let of_user = choice.spec.as_deref().or(of_environment.as_deref());
        let of_folder = || agent.and_then(|agent| agent.file.model.as_deref()).or(report.model.as_deref());
        let (model, because, key): (Arc<dyn DynModel>, _, String) = if let Some(spec) = of_user.or_else(of_folder) {
            let (model, key) = self.open_model(spec, choice.local_only).await?;
            (model, None, key)
        } else if let Some(file) = report.file_with_sealed_model(agent) {
            return Err(untrusted(&format!("{file} names a model")));
        } else {
            let found =
                find(&self.fetch(), choice.local_only).await.ok_or_else(|| ChooseModelError::new("no model is configured", WAYS))?;
            let model = open_provider(found.provider, &found.model, choice.local_only)?;
            (Arc::new(model), Some(found.to_string()), format!("{}/{}", found.provider.name, found.model))
        };
        let model: Arc<dyn DynModel> = match &choice.record {
            Some(path) => Arc::new(Recorder::new(model, path)?),
            None => model,
        };
        let all = self.state().and_then(|state| strategies(state).load().ok()).unwrap_or_default();
        let strategy = all.get(&key).and_then(|value| serde_json::from_value(value.clone()).ok());
        Ok(ChosenModel { model, because, strategy, key })
    }

    async fn open_model(&self, spec: &str, local_only: bool) -> Result<(Arc<dyn DynModel>, String), ChooseModelError> {
        Ok(match ModelSpec::read(spec) {
            ModelSpec::Replay(file) => (Arc::new(Replay::open(&file)?), format!("replay:{file}")),
            ModelSpec::Of(provider, model) => {
                (Arc::new(open_provider(provider, &model, local_only)?), format!("{}/{model}", provider.name))
            }
            ModelSpec::At(url, model) => {
                let model = match model {
                    Some(model) => model,
                    None => self.first_model(&url, local_only).await?,
                };
                let endpoint = ModelEndpoint { base_url: Some(url), local_only, ..ModelEndpoint::default() };
                let model = compatible()?.model(&model, endpoint)?;
                let key = model.address();
                (Arc::new(model), key)
            }
            ModelSpec::Named(name) => {
                let model = self.open_named(&name, local_only).await?;
                // Projects use the same names for different models.
                let key = format!("{name} {}", model.address());
                (Arc::new(model), key)
            }
            _ => return Err(ChooseModelError::new(format!("`{spec}` is not a model"), WAYS)),
        })
    }

    /// Returns the first model that a server lists.
    async fn first_model(&self, url: &str, local_only: bool) -> Result<String, ChooseModelError> {
        let reach = if local_only { helve_fetch::Reach::Local } else { helve_fetch::Reach::Any };
        let models = helve_models::list(&self.fetch(), url, None, reach, std::time::Duration::from_secs(5)).await;
        let hint = format!("check that the server is running, or append the model to the URL: `{url}#some-model`");
        let models =
            models.map_err(|error| ChooseModelError::new(format!("cannot list the models of the server at {url}: {error}"), hint))?;
        models
            .into_iter()
            .next()
            .ok_or_else(|| ChooseModelError::new(format!("the server at {url} has no models"), "load a model in the server"))
    }

    /// Opens a model that the project's settings define.
    async fn open_named(&self, name: &str, local_only: bool) -> Result<HttpModel, ChooseModelError> {
        let report = self.project().unwrap_or_default();
        let Some(entry) = report.models.get(name) else {
            if report.capabilities.iter().any(|capability| capability.name == format!("model {name}")) {
                return Err(untrusted(&format!("helve.yaml describes the model `{name}`")));
            }
            let near = match name.split_once('/') {
                Some((provider, _)) => suggest::did_you_mean(provider, helve_models::PROVIDERS.iter().map(|provider| provider.name)),
                None => suggest::did_you_mean(name, report.models.keys().map(String::as_str)),
            };
            return Err(ChooseModelError::new(
                format!("there is no model `{name}`{near}"),
                "write `provider/model`, such as `openrouter/some-model`, a URL, or a name from `models:` in helve.yaml",
            ));
        };
        let provider = Provider::named(&entry.provider).ok_or_else(|| {
            let known = helve_models::PROVIDERS.iter().map(|provider| provider.name).collect::<Vec<_>>().join(", ");
            ChooseModelError::new(
                format!("the model `{name}` has an unknown provider `{}`", entry.provider),
                format!("providers are {known}"),
            )
        })?;
        let endpoint = endpoint_of(entry, provider, local_only);
        let model = match (&entry.model, &entry.base_url) {
            (Some(model), _) => model.clone(),
            (None, Some(url)) => self.first_model(url, local_only).await?,
            (None, None) => name.to_owned(),
        };
        let opened = provider.model(&model, endpoint)?;
        Ok(match entry.function_calling {
            Some(native) => opened.calling_natively(native),
            None => opened,
        })
    }

    /// Stores which call strategy works for a model, so that the next run starts with it.
    pub fn remember_strategy(&self, chosen: &ChosenModel, strategy: Strategy) {
        let Some(state) = self.state() else { return };
        if chosen.strategy == Some(strategy) || (chosen.strategy.is_none() && strategy == Strategy::Native) {
            return;
        }
        if let Err(error) = strategies(state).change(|all| all.insert(chosen.key.clone(), serde_json::json!(strategy))) {
            tracing::debug!(%error, "cannot store the strategy of the model");
        }
    }
}

/// Returns the file with strategies by model. Values stay JSON, so that a value from a newer version does not invalidate the others.
fn strategies(state: &StateFolder) -> StateFile<Map<String, Value>> {
    StateFile::new(state.clone(), STRATEGIES, OnDamage::StartEmpty)
}

fn compatible() -> Result<&'static Provider, ChooseModelError> {
    Provider::named("openai_compatible").ok_or_else(|| ChooseModelError::new("there is no provider `openai_compatible`", WAYS))
}

fn open_provider(provider: &'static Provider, model: &str, local_only: bool) -> Result<HttpModel, ChooseModelError> {
    let key = key_in_environment(provider);
    if key.is_none() && !provider.keys.is_empty() {
        let names = provider.keys.join(" or ");
        return Err(ChooseModelError::new(format!("there is no API key for {}", provider.name), format!("set {names}")));
    }
    let endpoint = ModelEndpoint { key: key.map(|(_, key)| key), local_only, ..ModelEndpoint::default() };
    Ok(provider.model(model, endpoint)?)
}

fn endpoint_of(entry: &ModelEntry, provider: &Provider, local_only: bool) -> ModelEndpoint {
    let mut endpoint =
        ModelEndpoint { base_url: entry.base_url.clone(), local_only, context_tokens: entry.context_tokens, ..ModelEndpoint::default() };
    // An API key of the environment is only for the provider's own URL.
    let own = if entry.base_url.is_none() { key_in_environment(provider).map(|(_, key)| key) } else { None };
    endpoint.key = entry.api_key.clone().or(own);
    endpoint.options.price = entry.price.map(|price| Price { input: price.input, output: price.output });
    let limits = &mut endpoint.options.limits;
    limits.first_byte = entry.timeouts.first_byte.map_or(limits.first_byte, |time| time.0);
    limits.idle = entry.timeouts.idle.map_or(limits.idle, |time| time.0);
    endpoint.connections = Some(ConnectionPool::new(FetchOptions::default()));
    endpoint
}

fn untrusted(what: &str) -> ChooseModelError {
    let message = format!("{what}, but the folder is not trusted: the model would read the conversation");
    ChooseModelError::new(message, "review and trust the folder with `helve trust`, or name a model with --model")
}

impl ProjectReport {
    /// Returns the file that names the model, if that setting is not trusted.
    fn file_with_sealed_model<'a>(&'a self, agent: Option<&'a ProjectAgent>) -> Option<&'a str> {
        let names_model = |file: &str| self.sealed.iter().any(|(sealed, field)| &**sealed == file && field == "model");
        let of_agent = agent.map(|agent| &*agent.location).filter(|file| names_model(file));
        let of_project =
            || self.sealed.iter().find(|(file, field)| field == "model" && !file.starts_with("agents/")).map(|(file, _)| &**file);
        of_agent.or_else(of_project)
    }
}

/// Reports models in the settings and agents that can never be used.
pub(super) fn check(loaded: &LoadedProject, diagnostics: &mut Vec<Diagnostic>) {
    let models = &loaded.config.models;
    if let Some(file) = &loaded.config_file {
        for (name, entry) in models {
            let at = format!("/models/{}", name.replace('~', "~0").replace('/', "~1"));
            if let Some(error) = wrong_entry(entry, &at) {
                diagnostics.push(file.diagnose(Severity::Error, &error));
            }
        }
        if let Some(error) = loaded.config.model.as_deref().and_then(|spec| wrong_spec(spec, models)) {
            diagnostics.push(file.diagnose(Severity::Error, &error));
        }
    }
    for (agent, file) in &loaded.agents {
        if let Some(error) = agent.model.as_deref().and_then(|spec| wrong_spec(spec, models)) {
            diagnostics.push(file.diagnose(Severity::Error, &error));
        }
    }
}

fn wrong_entry(entry: &ModelEntry, at: &str) -> Option<FieldError> {
    let Some(provider) = Provider::named(&entry.provider) else {
        let known: Vec<&str> = helve_models::PROVIDERS.iter().map(|provider| provider.name).collect();
        let all = format!("providers are {}", known.join(", "));
        let error = unknown_name("provider", &entry.provider, format!("{at}/provider"), known);
        return Some(FieldError { hint: error.hint.or(Some(all)), ..error });
    };
    if provider.base_url.is_empty() && entry.base_url.is_none() {
        return Some(FieldError::new(at, format!("a model of the provider `{}` needs a URL", provider.name)).hint("add `base_url`"));
    }
    let url = entry.base_url.as_deref()?;
    read_url(url).err().map(|error| FieldError::new(format!("{at}/base_url"), error.to_string()))
}

fn wrong_spec(spec: &str, models: &BTreeMap<String, ModelEntry>) -> Option<FieldError> {
    let ModelSpec::Named(name) = ModelSpec::read(spec) else { return None };
    if models.contains_key(&name) {
        return None;
    }
    let error = unknown_name("model", &name, "/model", models.keys().map(String::as_str));
    let usage = || "write `provider/model`, a URL, or a name from `models:` in helve.yaml".to_owned();
    Some(FieldError { hint: error.hint.or_else(|| Some(usage())), ..error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(yaml: &str) -> ModelEntry {
        serde_json::from_value(helve_project::read_yaml(yaml).expect("YAML").value()).expect("an entry")
    }

    #[test]
    fn models_that_could_never_be_used_are_reported() {
        let wrong = |yaml: &str| wrong_entry(&entry(yaml), "/models/x").map(|error| error.message);
        assert_eq!(wrong("provider: anthropic"), None);
        assert_eq!(wrong("provider: openai_compatibel"), Some("there is no provider `openai_compatibel`".to_owned()));
        assert!(wrong("provider: openai_compatible").is_some());
        assert!(wrong("{provider: vllm, base_url: not-an-address}").is_some());
        let models = BTreeMap::from([("house".to_owned(), entry("provider: anthropic"))]);
        assert!(wrong_spec("house", &models).is_none() && wrong_spec("openrouter/x", &models).is_none());
        assert_eq!(wrong_spec("hause", &models).and_then(|error| error.hint), Some("did you mean `house`?".to_owned()));
    }
}
