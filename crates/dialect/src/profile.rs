//! The table of models and the formats that they use. For an unknown model, all formats apply.

use crate::dialect::Dialect;

/// Parts of model names and the formats of these models. More specific names come first.
const MODELS: [(&str, &[&str]); 46] = [
    ("qwen3-coder", &["qwen3_coder", "hermes"]),
    ("qwen3.5", &["qwen3_coder", "hermes"]),
    ("qwen3.6", &["qwen3_coder", "hermes"]),
    ("qwen", &["hermes", "qwen3_coder"]),
    ("qwq", &["hermes"]),
    ("hermes", &["hermes"]),
    ("smollm", &["hermes"]),
    ("bielik", &["hermes"]),
    ("ernie", &["hermes"]),
    ("granite-4", &["granite4", "hermes"]),
    ("granite-3", &["granite3", "granite31"]),
    ("granite-20b", &["granite20b"]),
    ("longcat", &["longcat"]),
    ("llama-4", &["llama4_pythonic", "pythonic", "llama3_json"]),
    ("llama-3", &["llama3_json", "llama3_python_tag", "llama31_function", "pythonic"]),
    ("llama3", &["llama3_json", "llama3_python_tag", "llama31_function", "pythonic"]),
    ("functionary", &["functionary_v32", "llama31_function"]),
    ("toolace", &["pythonic"]),
    ("lfm2", &["lfm2"]),
    ("olmo-3", &["olmo3"]),
    ("functiongemma", &["functiongemma"]),
    ("gemma-4", &["gemma4"]),
    ("gemma", &["gemma3_tool_code", "functiongemma", "gemma4"]),
    ("stral", &["mistral_v11", "mistral_v13", "mistral_v11_callid", "mistral_v3"]),
    ("deepseek-v4", &["deepseek_v4", "deepseek_v32"]),
    ("deepseek-v3.2", &["deepseek_v32", "deepseek_v4"]),
    ("deepseek", &["deepseek_v3", "deepseek_v31", "deepseek_v32", "deepseek_v4"]),
    ("kimi-k3", &["kimi_k3"]),
    ("kimi", &["kimi_k2", "kimi_k3"]),
    ("glm-4-9b", &["glm4_9b"]),
    ("glm", &["glm45", "glm47"]),
    ("hunyuan", &["hy_v3", "hunyuan_a13b"]),
    ("seed-oss", &["seed_oss"]),
    ("minimax", &["minimax_m1", "minimax_m2", "minimax_m3"]),
    ("claude", &["anthropic"]),
    ("minicpm", &["minicpm5"]),
    ("step3", &["step3"]),
    ("phi-4", &["phi4mini"]),
    ("command", &["cohere_action", "command_r"]),
    ("jamba", &["jamba"]),
    ("nemotron", &["qwen3_coder", "nemotron_v2", "hermes"]),
    ("internlm", &["internlm2"]),
    ("xlam", &["xlam"]),
    ("gigachat", &["gigachat3"]),
    ("gpt-oss", &["harmony"]),
    ("solar", &["solar_open"]),
];

impl Dialect {
    /// Returns the dialect of a model by its name: the formats of the model family, Helve's prompted JSON and XML, and OpenAI's JSON.
    /// Returns [`Dialect::auto`] if the name is unknown.
    #[must_use]
    pub fn of_model(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let found = MODELS.iter().find(|(part, _)| name.contains(part));
        found
            .and_then(|(_, formats)| {
                let names: Vec<&str> = formats.iter().copied().chain(["helve_json", "openai_json", "helve_xml"]).collect();
                Self::of(&names)
            })
            .unwrap_or_else(Self::auto)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Content, Item, Mode, ToolTable, parse};

    #[test]
    fn every_format_of_a_profile_is_there() {
        for format in MODELS.iter().flat_map(|(_, formats)| *formats) {
            assert!(Dialect::named(format).is_some(), "{format}");
        }
    }

    #[test]
    fn native_text_is_text() {
        let tools = Arc::new(ToolTable::unknown());
        let items = parse("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", &Dialect::native(), Mode::Lenient, &tools);
        assert!(matches!(items.as_slice(), [Item { content: Content::Text(_), .. }]), "{items:?}");
    }

    #[test]
    fn a_name_narrows_the_formats() {
        assert!(Dialect::of_model("Qwen/Qwen3-Coder-30B-A3B").name().starts_with("qwen3_coder+hermes"));
        assert!(Dialect::of_model("mistralai/Devstral-Small").name().starts_with("mistral_v11"));
        assert_eq!(Dialect::of_model("somebody/new-model").name(), "auto");
    }
}
