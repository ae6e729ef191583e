//! Which models are known to call functions natively, whoever serves them. What is not listed is found out.

/// Parts of names. Servers of open models differ, so only families whose providers do it themselves stand here.
const NATIVE: [&str; 9] = ["gpt-4", "gpt-5", "o3", "o4-mini", "claude", "gemini", "grok", "deepseek-chat", "mistral-large"];

/// Whether a model calls functions natively; nothing where nobody knows.
pub(crate) fn calls_natively(model: &str) -> Option<bool> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    NATIVE.iter().any(|part| name.starts_with(part)).then_some(true)
}
