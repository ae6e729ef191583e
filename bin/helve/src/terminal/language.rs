//! The languages of prompts, English and Chinese, and the words for yes and no in both.

use helve::internal::environment;

/// The language of prompts. Helve accepts input in both languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    Chinese,
}

impl Language {
    /// Returns the language of the locale in the environment.
    pub fn of_environment() -> Self {
        let set = |name| environment::var(name).filter(|value| !value.is_empty());
        Self::of_locale(&["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set).unwrap_or_default())
    }

    fn of_locale(locale: &str) -> Self {
        if locale.to_lowercase().starts_with("zh") { Self::Chinese } else { Self::English }
    }

    /// Returns the text in this language.
    pub fn choose(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

/// Returns whether an answer is a clear yes.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes" | "是" | "是的" | "好" | "好的")
}

/// Returns whether an answer is a clear no.
pub fn is_no(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "n" | "no" | "否" | "不" | "不行" | "不要")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_asked_in_their_language() {
        assert_eq!(Language::of_locale("zh_CN.UTF-8"), Language::Chinese);
        assert_eq!(Language::of_locale("de_DE"), Language::English);
        assert_eq!(Language::Chinese.choose("yes", "是"), "是");
    }
}
