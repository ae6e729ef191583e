//! The severity of log messages.

/// The severity of a log message. More severe levels compare as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogLevel(usize);

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl LogLevel {
    /// Returns the level with this name, if there is one.
    pub fn read(name: &str) -> Option<Self> {
        LEVELS.iter().position(|known| *known == name).map(Self)
    }

    /// Returns the name of the level.
    pub fn name(self) -> &'static str {
        LEVELS[self.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_an_order() {
        assert!(LogLevel::read("debug") < LogLevel::read("warning") && LogLevel::read("warning") < LogLevel::read("emergency"));
        assert_eq!(LogLevel::read("alert").map(LogLevel::name), Some("alert"));
        assert_eq!(LogLevel::read("loud"), None);
    }
}
