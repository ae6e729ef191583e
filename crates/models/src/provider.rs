//! The table of model providers: their URLs, their keys and what they support.

use helve_core::{ModelError, ModelInfo};
use helve_fetch::{ConnectionPool, FetchOptions, Reach, Url, read_url};
use secrecy::SecretString;

use crate::anthropic::Anthropic;
use crate::client::{HttpModel, ModelOptions};
use crate::gemini::Gemini;
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::profile;

/// A provider of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// The provider's name, as in `openrouter/some-model`.
    pub name: &'static str,
    /// The base URL of the API; empty if the user must set it.
    pub base_url: &'static str,
    /// Environment variables that may contain the API key, in order of preference.
    pub keys: &'static [&'static str],
    /// The model to use if the user names none; empty if there is no default.
    pub default_model: &'static str,
    /// The wire format of the API.
    pub wire: WireKind,
    /// Whether the provider is a server on this machine.
    pub local: bool,
    /// Whether the provider can enforce a JSON Schema for responses.
    pub constrains_output: bool,
    /// Whether all models of the provider support native function calling.
    pub calls_natively: bool,
}

/// The wire format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireKind {
    /// OpenAI's Chat Completions API.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
}

/// Creates a provider with OpenAI's Chat Completions API and without a default model.
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

/// Creates a provider for a server on this machine, which needs no key.
const fn local(name: &'static str, base_url: &'static str) -> Provider {
    Provider { local: true, ..chat(name, base_url, &[]) }
}

/// All providers, in the order in which Helve looks for their keys.
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
    /// Finds a provider by name, ignoring case and punctuation. Returns `None` if there is no such provider.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let name = plain(name);
        PROVIDERS.iter().find(|provider| plain(provider.name) == name)
    }

    /// Opens the model `name` of this provider.
    ///
    /// # Errors
    /// Returns an error if there is no base URL, or if the base URL is invalid.
    pub fn model(&self, name: &str, endpoint: ModelEndpoint) -> Result<HttpModel, ModelError> {
        let base = endpoint.base_url.as_deref().unwrap_or(self.base_url);
        if base.is_empty() {
            return Err(ModelError::Refused(format!("the provider `{}` needs a `base_url`", self.name)));
        }
        let base = read_url(base).map_err(|error| ModelError::Refused(format!("`base_url`: {error}")))?;
        let mut options = endpoint.options;
        options.key = endpoint.key;
        if endpoint.local_only {
            options.reach = Reach::Local;
        }
        let info = ModelInfo {
            provider: self.name.into(),
            constrains_output: self.constrains_output,
            calls_natively: if self.calls_natively { Some(true) } else { profile::calls_natively(name) },
            context_tokens: endpoint.context_tokens,
            ..ModelInfo::new(name)
        };
        Ok(self.connect(info, base, options, endpoint.connections.unwrap_or_else(|| ConnectionPool::new(FetchOptions::default()))))
    }

    fn connect(&self, info: ModelInfo, base: Url, options: ModelOptions, connections: ConnectionPool) -> HttpModel {
        match self.wire {
            WireKind::OpenAiChat => {
                let wire = OpenAiChat { max_completion_tokens: self.name == "openai", send_reasoning: self.name == "deepseek" };
                HttpModel::new(info, wire, base, options, connections)
            }
            WireKind::OpenAiResponses => HttpModel::new(info, OpenAiResponses::default(), base, options, connections),
            WireKind::Anthropic => HttpModel::new(info, Anthropic, base, options, connections),
            WireKind::Gemini => HttpModel::new(info, Gemini, base, options, connections),
        }
    }
}

/// The endpoint of a model. Fields that are `None` have the provider's defaults.
#[derive(Debug, Default)]
pub struct ModelEndpoint {
    /// The base URL of the API.
    pub base_url: Option<String>,
    /// The API key.
    pub key: Option<SecretString>,
    /// Whether the client may connect only to this machine.
    pub local_only: bool,
    /// The size of the model's context window, in tokens.
    pub context_tokens: Option<u32>,
    /// Timeouts, retries and prices. `key` replaces the key in these options.
    pub options: ModelOptions,
    /// The connection pool to use. `None` creates a new one.
    pub connections: Option<ConnectionPool>,
}

impl HttpModel {
    /// Opens a model at OpenRouter.
    ///
    /// # Errors
    /// Does not fail for any key or model name.
    pub fn open_router(key: impl Into<SecretString>, model: &str) -> Result<Self, ModelError> {
        Self::of("openrouter", key, model)
    }

    /// Opens a model of the provider with this name.
    ///
    /// # Errors
    /// Returns an error if there is no such provider, or if the provider has no default base URL.
    pub fn of(provider: &str, key: impl Into<SecretString>, model: &str) -> Result<Self, ModelError> {
        let known = Provider::named(provider).ok_or_else(|| ModelError::NotFound(format!("there is no provider `{provider}`")))?;
        known.model(model, ModelEndpoint { key: Some(key.into()), ..ModelEndpoint::default() })
    }

    /// Opens a model on a server that is compatible with OpenAI's Chat Completions API.
    ///
    /// # Errors
    /// Returns an error if `base_url` is invalid.
    pub fn openai_compatible(base_url: &str, key: Option<SecretString>, model: &str) -> Result<Self, ModelError> {
        let endpoint = ModelEndpoint { base_url: Some(base_url.to_owned()), key, ..ModelEndpoint::default() };
        Provider::named("openai_compatible").ok_or_else(|| ModelError::NotFound("openai_compatible".into()))?.model(model, endpoint)
    }
}
