//! Helve's built-in tools: `calculate`, `get_date`, `get_time` and `stop_response`.

mod calculate;
mod stop;
mod time;

use std::sync::Arc;

use helve_core::{DynTool, function};

/// Returns all built-in tools, sorted by name.
#[must_use]
pub fn tools() -> Vec<Arc<dyn DynTool>> {
    function::linked(module_path!())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_tool_announces_itself() {
        let names: Vec<_> = super::tools().iter().map(|tool| tool.spec().name().to_string()).collect();
        assert_eq!(names, ["calculate", "get_date", "get_time", "stop_response"]);
    }
}
