//! The input of a user.

use helve_core::Part;

/// The input of a user: text, images, or both.
#[derive(Debug, Clone)]
pub struct UserInput(Vec<Part>);

impl UserInput {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_parts(self) -> Vec<Part> {
        self.0
    }

    /// Appends a text part.
    pub(crate) fn with_text(mut self, text: &str) -> Self {
        self.0.push(Part::Text { text: text.into() });
        self
    }
}

impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        Self(vec![Part::Text { text: text.into() }])
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self(vec![Part::Text { text: text.into() }])
    }
}

impl From<&String> for UserInput {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Vec<Part>> for UserInput {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}
