//! Severity of log messages.

/// The severity of a log message; a more severe one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogLevel(usize);

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl LogLevel {
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
        assert!(LogLevel::read("debug") < LogLevel::read("warning") && LogLevel::read("warning") < LogLevel::read("emergency"));
        assert_eq!(LogLevel::read("alert").map(LogLevel::name), Some("alert"));
        assert_eq!(LogLevel::read("loud"), None);
    }
}
