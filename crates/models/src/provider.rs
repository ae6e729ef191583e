//! Who runs models: their addresses, their keys, what they can do. A provider is a row.

use helve_core::{ModelError, ModelInfo};
use helve_fetch::{ConnectionPool, FetchOptions, Reach, Url, read_url};
use secrecy::SecretString;

use crate::anthropic::Anthropic;
use crate::client::{HttpModel, ModelOptions};
use crate::gemini::Gemini;
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::profile;

/// Who runs models, and how they are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// Its name, as in `openrouter/some-model`.
    pub name: &'static str,
    /// Its address; empty where a person must give it.
    pub base_url: &'static str,
    /// Variables of the environment that may hold its key, in order.
    pub keys: &'static [&'static str],
    /// The model that is used where a key is all that is known; empty where there is none to guess.
    pub default_model: &'static str,
    /// Which wire it speaks.
    pub wire: WireKind,
    /// Whether it runs on this machine.
    pub local: bool,
    /// Whether its server can hold a model to a JSON Schema.
    pub constrains_output: bool,
    /// Whether all its models call functions natively.
    pub calls_natively: bool,
}

/// The wires that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireKind {
    /// OpenAI's Chat Completions.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

const fn chat(name: &'static str, base_url: &'static str, keys: &'static [&'static str]) -> Provider {
    Provider {
        name,
        base_url,
        keys,
        default_model: "",
        wire: WireKind::OpenAiChat,
        local: false,
        constrains_output: true,
        calls_natively: false,
    }
}

const fn local(name: &'static str, base_url: &'static str) -> Provider {
    Provider { local: true, ..chat(name, base_url, &[]) }
}

/// All providers, in the order in which their keys are looked for.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        default_model: "openrouter/auto",
        ..chat("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY", "OPEN_ROUTER_API_KEY"])
    },
    Provider { calls_natively: true, default_model: "gpt-5-mini", ..chat("openai", "https://api.openai.com/v1", &["OPENAI_API_KEY"]) },
    Provider { default_model: "deepseek-chat", ..chat("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]) },
    Provider { default_model: "openai/gpt-oss-120b", ..chat("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]) },
    Provider { default_model: "mistral-large-latest", ..chat("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"]) },
    Provider {
        wire: WireKind::Anthropic,
        calls_natively: true,
        default_model: "claude-sonnet-4-5",
        ..chat("anthropic", "https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"])
    },
    Provider {
        wire: WireKind::Gemini,
        calls_natively: true,
        default_model: "gemini-2.5-flash",
        ..chat("gemini", "https://generativelanguage.googleapis.com/v1beta", &["GEMINI_API_KEY", "GOOGLE_API_KEY"])
    },
    Provider {
        wire: WireKind::OpenAiResponses,
        calls_natively: true,
        ..chat("openai_responses", "https://api.openai.com/v1", &["OPENAI_API_KEY"])
    },
    local("ollama", "http://127.0.0.1:11434/v1"),
    local("lmstudio", "http://127.0.0.1:1234/v1"),
    local("llamacpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "http://127.0.0.1:8000/v1"),
    chat("openai_compatible", "", &[]),
];

impl Provider {
    /// A provider by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let name = plain(name);
        PROVIDERS.iter().find(|provider| plain(provider.name) == name)
    }

    /// One of its models.
    ///
    /// # Errors
    /// Where there is no address, or it cannot be read.
    pub fn model(&self, name: &str, place: ModelEndpoint) -> Result<HttpModel, ModelError> {
        let base = place.base_url.as_deref().unwrap_or(self.base_url);
        if base.is_empty() {
            return Err(ModelError::Refused(format!("`{}` needs an address: `base_url`", self.name)));
        }
        let base = read_url(base).map_err(|error| ModelError::Refused(format!("`base_url`: {error}")))?;
        let mut options = place.options;
        options.key = place.key;
        if place.local_only {
            options.reach = Reach::Local;
        }
        let info = ModelInfo {
            provider: self.name.into(),
            constrains_output: self.constrains_output,
            calls_natively: if self.calls_natively { Some(true) } else { profile::calls_natively(name) },
            context_tokens: place.context_tokens,
            ..ModelInfo::new(name)
        };
        Ok(self.speak(info, base, options, place.connections.unwrap_or_else(|| ConnectionPool::new(FetchOptions::default()))))
    }

    fn speak(&self, info: ModelInfo, base: Url, options: ModelOptions, connections: ConnectionPool) -> HttpModel {
        match self.wire {
            WireKind::OpenAiChat => {
                let wire = OpenAiChat { max_completion_tokens: self.name == "openai", thoughts_back: self.name == "deepseek" };
                HttpModel::new(info, wire, base, options, connections)
            }
            WireKind::OpenAiResponses => HttpModel::new(info, OpenAiResponses::default(), base, options, connections),
            WireKind::Anthropic => HttpModel::new(info, Anthropic, base, options, connections),
            WireKind::Gemini => HttpModel::new(info, Gemini, base, options, connections),
        }
    }
}

/// Where a model is, and how it is reached. What is not given is the provider's own.
#[derive(Debug, Default)]
pub struct ModelEndpoint {
    /// The address.
    pub base_url: Option<String>,
    /// The key.
    pub key: Option<SecretString>,
    /// Whether nothing off this machine may be reached.
    pub local_only: bool,
    /// How many tokens the model can read.
    pub context_tokens: Option<u32>,
    /// How it is reached.
    pub options: ModelOptions,
    /// The connections to use.
    pub connections: Option<ConnectionPool>,
}

impl HttpModel {
    /// A model at OpenRouter.
    ///
    /// # Errors
    /// Never for a plain key and name.
    pub fn open_router(key: impl Into<SecretString>, model: &str) -> Result<Self, ModelError> {
        Self::of("openrouter", key, model)
    }

    /// A model of a provider, by the provider's name.
    ///
    /// # Errors
    /// Where there is no such provider.
    pub fn of(provider: &str, key: impl Into<SecretString>, model: &str) -> Result<Self, ModelError> {
        let known = Provider::named(provider).ok_or_else(|| ModelError::NotFound(format!("there is no provider `{provider}`")))?;
        known.model(model, ModelEndpoint { key: Some(key.into()), ..ModelEndpoint::default() })
    }

    /// A model behind any server that speaks OpenAI's Chat Completions.
    ///
    /// # Errors
    /// Where the address cannot be read.
    pub fn openai_compatible(base_url: &str, key: Option<SecretString>, model: &str) -> Result<Self, ModelError> {
        let place = ModelEndpoint { base_url: Some(base_url.to_owned()), key, ..ModelEndpoint::default() };
        Provider::named("openai_compatible").ok_or_else(|| ModelError::NotFound("openai_compatible".into()))?.model(model, place)
    }
}
