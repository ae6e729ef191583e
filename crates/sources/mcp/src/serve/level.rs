//! How grave a message of a log is.

/// How grave a message of a log is; the graver, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(usize);

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl Level {
    /// A level by its name.
    pub fn read(name: &str) -> Option<Self> {
        LEVELS.iter().position(|known| *known == name).map(Self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        LEVELS[self.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_an_order() {
        assert!(Level::read("debug") < Level::read("warning") && Level::read("warning") < Level::read("emergency"));
        assert_eq!(Level::read("alert").map(Level::name), Some("alert"));
        assert_eq!(Level::read("loud"), None);
    }
}
