//! Models that are known to call functions natively on any server. For all others, Helve finds out.

/// Prefixes of names. Servers of open models differ, so this lists only families that their own providers serve.
const NATIVE: [&str; 9] = ["gpt-4", "gpt-5", "o3", "o4-mini", "claude", "gemini", "grok", "deepseek-chat", "mistral-large"];

/// Whether a model calls functions natively; `None` if that is not known.
pub(crate) fn calls_natively(model: &str) -> Option<bool> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    NATIVE.iter().any(|part| name.starts_with(part)).then_some(true)
}
