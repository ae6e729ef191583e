//! A list of models that support native function calling on every server. For all other models, Helve finds out at run time.

/// Name prefixes of models that support native function calling on every server. Open models are not listed: their servers differ.
const NATIVE: [&str; 9] = ["gpt-4", "gpt-5", "o3", "o4-mini", "claude", "gemini", "grok", "deepseek-chat", "mistral-large"];

/// Returns whether a model supports native function calling, or `None` if that is not known.
pub(crate) fn calls_natively(model: &str) -> Option<bool> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    NATIVE.iter().any(|part| name.starts_with(part)).then_some(true)
}
