//! Which model answers: what a person wrote, what the project says, or what can be found.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use helve_agent::Strategy;
use helve_core::authored::FieldError;
use helve_core::{DynModel, ModelError, suggest};
use helve_fetch::{ConnectionPool, FetchOptions, read_url};
use helve_models::{FoundModel, HttpModel, ModelEndpoint, ModelSpec, Price, Provider, Recorder, Replay, find, key_in_environment};
use helve_project::{Diagnostic, ModelEntry, OnDamage, Severity, StateFile, StateFolder};
use serde_json::{Map, Value};

use super::load::Loaded;
use super::{Helve, ProjectAgent, ProjectReport};

/// The file that remembers how calls were carried.
const LEARNED: &str = "models.json";
const WAYS: &str = "set OPENROUTER_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY; or start a server on this machine, such as \
Ollama or llama.cpp; or write `model:` into helve.yaml; or name one with --model, such as `openrouter/some-model` or `http://127.0.0.1:8080/v1`. \
`helve demo` shows what it looks like without any";

/// What a person wants of a model.
#[derive(Debug, Clone, Default)]
pub struct ModelChoice {
    /// Its name, as it is written after `--model`.
    pub spec: Option<String>,
    /// Whether nothing off this machine may be reached.
    pub local_only: bool,
    /// Where its answers are recorded.
    pub record: Option<PathBuf>,
}

helve_core::setters!(ModelChoice {
    /// Names the model, as after `--model`.
    spec: some into String,
    /// Reaches models on this machine only.
    local_only: bool,
    /// Records what the model says in this file.
    record: some into PathBuf,
});

/// The model that answers.
pub struct ChosenModel {
    /// The model.
    pub model: Arc<dyn DynModel>,
    /// A line that says why, where nobody named it.
    pub because: Option<String>,
    /// How calls were carried when it was last used.
    pub strategy: Option<Strategy>,
    key: String,
}

/// Why no model can be chosen, and what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct NoModel {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl NoModel {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl From<ModelError> for NoModel {
    fn from(error: ModelError) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

impl Helve {
    /// The model that answers: the one that was named, the agent's, the project's, or one that can be found. A folder that is not trusted
    /// names none: whoever is at its address would read every word.
    ///
    /// # Errors
    /// Where there is none; says what to do.
    pub async fn model(&self, choice: &ModelChoice, agent: Option<&ProjectAgent>) -> Result<ChosenModel, NoModel> {
        let report = self.project().unwrap_or_default();
        let of_environment = helve_core::environment::var("HELVE_MODEL").filter(|spec| !spec.trim().is_empty());
        let of_user = choice.spec.clone().or(of_environment);
        let of_folder = agent.and_then(|agent| agent.file.model.as_deref()).or(report.model.as_deref());
        let (model, because, key): (Arc<dyn DynModel>, _, String) = if let Some(spec) = &of_user {
            let (model, key) = self.open_model(spec, choice.local_only).await?;
            (model, None, key)
        } else if let Some(spec) = of_folder {
            let (model, key) = self.open_model(spec, choice.local_only).await?;
            (model, None, key)
        } else if let Some(file) = report.file_with_sealed_model(agent) {
            return Err(untrusted(&format!("{file} names a model")));
        } else {
            let found = find(&self.fetch(), choice.local_only).await.ok_or_else(|| NoModel::new("no model is set up", WAYS))?;
            let model = open_provider(found.provider, &found.model, choice.local_only)?;
            (Arc::new(model), Some(found.to_string()), key_of(&found))
        };
        let model: Arc<dyn DynModel> = match &choice.record {
            Some(path) => Arc::new(Recorder::new(model, path)?),
            None => model,
        };
        let learned = self.state().and_then(|state| learned(state).load().ok()).unwrap_or_default();
        let strategy = learned.get(&key).and_then(|value| serde_json::from_value(value.clone()).ok());
        Ok(ChosenModel { model, because, strategy, key })
    }

    async fn open_model(&self, spec: &str, local_only: bool) -> Result<(Arc<dyn DynModel>, String), NoModel> {
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
                let place = ModelEndpoint { base_url: Some(url), local_only, ..ModelEndpoint::default() };
                let model = compatible()?.model(&model, place)?;
                let key = model.address();
                (Arc::new(model), key)
            }
            ModelSpec::Named(name) => {
                let model = self.open_named(&name, local_only).await?;
                // Projects use the same names for different models.
                let key = format!("{name} {}", model.address());
                (Arc::new(model), key)
            }
            _ => return Err(NoModel::new(format!("`{spec}` names no model"), WAYS)),
        })
    }

    /// The first model that a server offers.
    async fn first_model(&self, url: &str, local_only: bool) -> Result<String, NoModel> {
        let reach = if local_only { helve_fetch::Reach::Local } else { helve_fetch::Reach::Any };
        let models = helve_models::list(&self.fetch(), url, None, reach, std::time::Duration::from_secs(5)).await;
        let hint = format!("check that it runs, or name the model behind the address: `{url}#some-model`");
        let models = models.map_err(|error| NoModel::new(format!("the server does not say which models it has: {error}"), hint))?;
        models.into_iter().next().ok_or_else(|| NoModel::new(format!("the server at {url} has no models"), "load one there"))
    }

    /// A model by a name of the project's own.
    async fn open_named(&self, name: &str, local_only: bool) -> Result<HttpModel, NoModel> {
        let report = self.project().unwrap_or_default();
        let Some(entry) = report.models.get(name) else {
            if report.capabilities.iter().any(|capability| capability.name == format!("model {name}")) {
                return Err(untrusted(&format!("helve.yaml describes the model `{name}`")));
            }
            let near = match name.split_once('/') {
                Some((provider, _)) => suggest::did_you_mean(provider, helve_models::PROVIDERS.iter().map(|provider| provider.name)),
                None => suggest::did_you_mean(name, report.models.keys().map(String::as_str)),
            };
            return Err(NoModel::new(
                format!("there is no model `{name}`{near}"),
                "write `provider/model`, such as `openrouter/some-model`, an address, or a name from `models:` in helve.yaml",
            ));
        };
        let provider = Provider::named(&entry.provider).ok_or_else(|| {
            let known = helve_models::PROVIDERS.iter().map(|provider| provider.name).collect::<Vec<_>>().join(", ");
            NoModel::new(format!("the model `{name}` has an unknown provider `{}`", entry.provider), format!("known are: {known}"))
        })?;
        let place = place_of(entry, provider, local_only);
        let model = match (&entry.model, &entry.base_url) {
            (Some(model), _) => model.clone(),
            (None, Some(url)) => self.first_model(url, local_only).await?,
            (None, None) => name.to_owned(),
        };
        let opened = provider.model(&model, place)?;
        Ok(match entry.function_calling {
            Some(native) => opened.calling_natively(native),
            None => opened,
        })
    }

    /// Remembers how calls were carried, so that the next run begins with what worked.
    pub fn learn(&self, chosen: &ChosenModel, strategy: Option<Strategy>) {
        let (Some(state), Some(strategy)) = (self.state(), strategy) else { return };
        if chosen.strategy == Some(strategy) || (chosen.strategy.is_none() && strategy == Strategy::Native) {
            return;
        }
        if let Err(error) = learned(state).change(|learned| learned.insert(chosen.key.clone(), serde_json::json!(strategy))) {
            tracing::debug!(%error, "cannot save the learned strategy of a model");
        }
    }
}

/// Strategies by model. Values stay JSON, so that one of a newer version does not invalidate the others.
fn learned(state: &StateFolder) -> StateFile<Map<String, Value>> {
    StateFile::new(state.clone(), LEARNED, OnDamage::StartEmpty)
}

fn key_of(found: &FoundModel) -> String {
    format!("{}/{}", found.provider.name, found.model)
}

fn compatible() -> Result<&'static Provider, NoModel> {
    Provider::named("openai_compatible").ok_or_else(|| NoModel::new("there is no such provider", WAYS))
}

fn open_provider(provider: &'static Provider, model: &str, local_only: bool) -> Result<HttpModel, NoModel> {
    let key = key_in_environment(provider);
    if key.is_none() && !provider.keys.is_empty() {
        let names = provider.keys.join(" or ");
        return Err(NoModel::new(format!("there is no key for {}", provider.name), format!("set {names}")));
    }
    let place = ModelEndpoint { key: key.map(|(_, key)| key), local_only, ..ModelEndpoint::default() };
    Ok(provider.model(model, place)?)
}

fn place_of(entry: &ModelEntry, provider: &Provider, local_only: bool) -> ModelEndpoint {
    let mut place =
        ModelEndpoint { base_url: entry.base_url.clone(), local_only, context_tokens: entry.context_tokens, ..ModelEndpoint::default() };
    // A key of the environment belongs to the provider's own address only.
    let own = if entry.base_url.is_none() { key_in_environment(provider).map(|(_, key)| key) } else { None };
    place.key = entry.api_key.clone().or(own);
    place.options.price = entry.price.map(|price| Price { input: price.input, output: price.output });
    let patience = &mut place.options.patience;
    patience.first_byte = entry.timeouts.first_byte.map_or(patience.first_byte, |time| time.0);
    patience.idle = entry.timeouts.idle.map_or(patience.idle, |time| time.0);
    place.connections = Some(ConnectionPool::new(FetchOptions::default()));
    place
}

fn untrusted(what: &str) -> NoModel {
    let message = format!("{what}, and the folder is not trusted: the model would read all that is said");
    NoModel::new(message, "look at what the folder would do with `helve trust`, or name a model yourself with --model")
}

impl ProjectReport {
    /// The file that names the model which would answer, if it waits for trust.
    fn file_with_sealed_model<'a>(&'a self, agent: Option<&'a ProjectAgent>) -> Option<&'a str> {
        let names_model = |file: &str| self.sealed.iter().any(|(sealed, field)| &**sealed == file && field == "model");
        let of_agent = agent.map(|agent| &*agent.location).filter(|file| names_model(file));
        let of_project =
            || self.sealed.iter().find(|(file, field)| field == "model" && !file.starts_with("agents/")).map(|(file, _)| &**file);
        of_agent.or_else(of_project)
    }
}

/// Reports models that could never be used.
pub(super) fn check(loaded: &Loaded, diagnostics: &mut Vec<Diagnostic>) {
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
        let error = FieldError::new(format!("{at}/provider"), format!("there is no provider `{}`", entry.provider));
        let known = || helve_models::PROVIDERS.iter().map(|provider| provider.name);
        return Some(match suggest::nearest(&entry.provider, known()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("known are: {}", known().collect::<Vec<_>>().join(", "))),
        });
    };
    if provider.base_url.is_empty() && entry.base_url.is_none() {
        return Some(FieldError::new(at, format!("a model of `{}` needs its address", provider.name)).hint("add `base_url`"));
    }
    let url = entry.base_url.as_deref()?;
    read_url(url).err().map(|error| FieldError::new(format!("{at}/base_url"), error.to_string()))
}

fn wrong_spec(spec: &str, models: &BTreeMap<String, ModelEntry>) -> Option<FieldError> {
    let ModelSpec::Named(name) = ModelSpec::read(spec) else { return None };
    if models.contains_key(&name) {
        return None;
    }
    let error = FieldError::new("/model", format!("there is no model `{name}`"));
    Some(match suggest::nearest(&name, models.keys().map(String::as_str)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("write `provider/model`, an address, or a name from `models:` in helve.yaml"),
    })
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
