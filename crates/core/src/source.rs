//! Sources of tools, and methods that filter and rename the tools of a source.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::ids::ConversationId;
use crate::outcome::Output;
use crate::pattern::Pattern;
use crate::spec::{SpecError, ToolSpec};
use crate::tool::DynTool;

/// The id of a source, such as `builtin` or `mcp:files`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(Arc<str>);

impl SourceId {
    /// Returns the id as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SourceId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which conversations can use the tools of a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// All conversations.
    #[default]
    Global,
    /// Only conversations with this device.
    Device(Arc<str>),
    /// Only this conversation.
    Conversation(ConversationId),
}

/// The state of a source.
#[derive(Debug, Clone)]
pub enum SourceState {
    /// The tools of the source are not known yet.
    Connecting,
    /// The source has these tools.
    Ready(ToolList),
    /// The source failed for this reason.
    Failed(Arc<str>),
}

/// A source of tools. Its tools may change while the program runs.
pub trait ToolSource: Send + Sync + 'static {
    /// Returns the id of the source.
    fn id(&self) -> &SourceId;

    /// Returns which conversations can use the tools.
    fn scope(&self) -> Scope {
        Scope::Global
    }

    /// Returns whether the source may have a tool of this name once it is connected.
    fn may_bring(&self, _name: &str) -> bool {
        false
    }

    /// Returns whether the source has a tool of this name that it does not offer, because no person has approved it yet.
    fn withholds(&self, _name: &str) -> bool {
        false
    }

    /// Returns a receiver for the current state and its changes.
    fn tools(&self) -> watch::Receiver<SourceState>;
}

/// A source whose tools the program sets: functions, files of a folder, fakes in tests.
#[derive(Debug)]
pub struct ListSource {
    id: SourceId,
    scope: Scope,
    state: watch::Sender<SourceState>,
}

impl ListSource {
    /// Creates a source with these tools.
    #[must_use]
    pub fn new(id: impl Into<SourceId>, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        let state = watch::Sender::new(SourceState::Ready(tools.into_iter().collect()));
        Self { id: id.into(), scope: Scope::Global, state }
    }

    /// Sets which conversations can use the tools.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Replaces the state of the source.
    pub fn set(&self, state: SourceState) {
        self.state.send_replace(state);
    }

    /// Adds a tool to the source.
    ///
    /// # Errors
    /// [`SpecError::Duplicate`] if the source already has a tool of this name.
    pub fn add(&self, tool: Arc<dyn DynTool>) -> Result<(), SpecError> {
        self.add_all([tool])
    }

    /// Adds all tools, or none if there is an error.
    ///
    /// # Errors
    /// [`SpecError::Duplicate`] if two tools would have the same name.
    pub fn add_all(&self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Result<(), SpecError> {
        let new: Vec<_> = tools.into_iter().collect();
        let mut duplicate = None;
        self.state.send_if_modified(|state| {
            let old: &[_] = if let SourceState::Ready(list) = state { list.as_slice() } else { &[] };
            let mut names: HashSet<&str> = old.iter().map(|tool| &**tool.spec().name()).collect();
            duplicate = new.iter().map(|tool| tool.spec().name()).find(|name| !names.insert(name)).map(ToString::to_string);
            if duplicate.is_none() {
                *state = SourceState::Ready(old.iter().chain(&new).cloned().collect());
            }
            duplicate.is_none()
        });
        duplicate.map_or(Ok(()), |name| Err(SpecError::Duplicate { name }))
    }

    /// Removes the tool of this name. Returns whether the source had it.
    #[expect(clippy::must_use_candidate, reason = "few callers need to know whether it was there")]
    pub fn remove(&self, name: &str) -> bool {
        self.state.send_if_modified(|state| {
            let SourceState::Ready(list) = state else { return false };
            let rest: ToolList = list.iter().filter(|tool| &**tool.spec().name() != name).cloned().collect();
            let removed = rest.as_slice().len() < list.as_slice().len();
            if removed {
                *list = rest;
            }
            removed
        })
    }
}

impl ToolSource for ListSource {
    fn id(&self) -> &SourceId {
        &self.id
    }

    fn scope(&self) -> Scope {
        self.scope.clone()
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.state.subscribe()
    }
}

/// The tools of one source, with methods that filter and rename them.
#[derive(Debug, Clone, Default)]
pub struct ToolList(Arc<[Arc<dyn DynTool>]>);

impl ToolList {
    /// Returns the tools, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Arc<dyn DynTool>] {
        &self.0
    }

    /// Returns an iterator over the tools, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<dyn DynTool>> {
        self.0.iter()
    }

    /// Returns the tools that match an `include` pattern (an empty list matches all) and no `exclude` pattern.
    #[must_use]
    pub fn filtered(&self, include: &[Pattern], exclude: &[Pattern]) -> Self {
        let named = |patterns: &[Pattern], tool: &Arc<dyn DynTool>| patterns.iter().any(|pattern| pattern.matches(tool.spec().name()));
        self.0.iter().filter(|tool| (include.is_empty() || named(include, tool)) && !named(exclude, tool)).cloned().collect()
    }

    /// Adds `prefix` and `_` in front of all names. An empty prefix changes nothing.
    ///
    /// # Errors
    /// If a name becomes too long.
    pub fn prefixed(&self, prefix: &str) -> Result<Self, SpecError> {
        if prefix.is_empty() {
            return Ok(self.clone());
        }
        self.respecified(|spec| Some(format!("{prefix}_{}", spec.name())))
    }

    /// Renames tools by a map from old to new names. Unknown names are ignored.
    ///
    /// # Errors
    /// If a new name is not valid.
    pub fn renamed(&self, names: &HashMap<String, String>) -> Result<Self, SpecError> {
        self.respecified(|spec| names.get(&**spec.name()).cloned())
    }

    /// Renames tools, and all mentions of renamed tools in the descriptions of the list.
    fn respecified(&self, name: impl Fn(&ToolSpec) -> Option<String>) -> Result<Self, SpecError> {
        let names: HashMap<Arc<str>, String> =
            self.0.iter().filter_map(|tool| Some((tool.spec().name().clone(), name(tool.spec())?))).collect();
        let mentions = crate::mention::Mentions::new(names.iter().map(|(old, new)| (&**old, &**new)));
        let respecified = self.0.iter().map(|tool| {
            let old = tool.spec();
            let new_name = names.get(old.name());
            let description = mentions.rewrite(old.description());
            if new_name.is_none() && description.is_none() {
                return Ok(tool.clone());
            }
            let mut spec = ToolSpec::clone(old);
            if let Some(new_name) = new_name {
                spec = spec.with_name(new_name.as_str())?;
            }
            if let Some(description) = description {
                spec = spec.with_description(description);
            }
            Ok(Arc::new(RespecifiedTool { spec: spec.share(), tool: tool.clone() }) as Arc<dyn DynTool>)
        });
        respecified.collect::<Result<_, SpecError>>()
    }
}

/// Writes the name of the tool.
impl fmt::Debug for dyn DynTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(self.spec().name()).finish()
    }
}

impl<'a> IntoIterator for &'a ToolList {
    type Item = &'a Arc<dyn DynTool>;
    type IntoIter = std::slice::Iter<'a, Arc<dyn DynTool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Arc<dyn DynTool>> for ToolList {
    fn from_iter<I: IntoIterator<Item = Arc<dyn DynTool>>>(tools: I) -> Self {
        Self(tools.into_iter().collect())
    }
}

/// A tool with a replaced spec.
struct RespecifiedTool {
    spec: Arc<ToolSpec>,
    tool: Arc<dyn DynTool>,
}

impl DynTool for RespecifiedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        self.tool.call(call, cx)
    }

    fn validate(&self, call: &ToolCall) -> Result<(), ToolError> {
        self.tool.validate(call)
    }

    fn held_because(&self) -> Option<&str> {
        self.tool.held_because()
    }

    fn forget(&self, call: &ToolCall, state: &Value) {
        self.tool.forget(call, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{IntoTool, Tool, ToolResult};

    struct Named(&'static str, &'static str);

    impl Tool for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn description(&self) -> &str {
            self.1
        }

        fn parameters_schema(&self) -> Value {
            serde_json::json!({"type": "object"})
        }

        async fn execute(&self, _: &Value) -> ToolResult {
            ToolResult::success(self.0)
        }
    }

    fn list() -> ToolList {
        [Named("read", "Reads; see `write`, not rewrite."), Named("write", "Writes.")]
            .into_iter()
            .map(|tool| tool.into_tool().expect("a tool"))
            .collect()
    }

    fn names(list: &ToolList) -> Vec<&str> {
        list.iter().map(|tool| &**tool.spec().name()).collect()
    }

    #[tokio::test]
    async fn a_prefix_renames_the_tools_and_what_they_say_of_each_other() {
        let list = list().prefixed("files").expect("names");
        assert_eq!(names(&list), ["files_read", "files_write"]);
        assert_eq!(&**list.as_slice()[0].spec().description(), "Reads; see `files_write`, not rewrite.");
        let call = ToolCall::new("files_read", serde_json::json!({}));
        let output = list.as_slice()[0].call(&call, &CallContext::default()).await.expect("an output");
        assert_eq!(output.text, "read");
    }

    #[test]
    fn a_list_changes_by_name() {
        let source = ListSource::new("own", list().as_slice().to_vec());
        let now = |source: &ListSource| match &*source.tools().borrow() {
            SourceState::Ready(list) => names(list).join(" "),
            _ => String::new(),
        };
        let mut seen = source.tools();
        assert!(!source.remove("nothing") && !seen.has_changed().expect("a source"));
        assert!(source.remove("read") && seen.has_changed().expect("a source"));
        assert_eq!(now(&source), "write");
        seen.mark_unchanged();
        let again = list().as_slice()[1].clone();
        assert_eq!(source.add(again), Err(SpecError::Duplicate { name: "write".to_owned() }));
        assert!(!seen.has_changed().expect("a source"));
        source.add_all(list().iter().take(1).cloned()).expect("a new name");
        assert_eq!(now(&source), "write read");
    }

    #[test]
    fn filters_and_renames() {
        assert_eq!(names(&list().filtered(&["r*".into()], &[])), ["read"]);
        assert_eq!(names(&list().filtered(&[], &["r*".into()])), ["write"]);
        let renamed = list().renamed(&HashMap::from([("write".into(), "put".into())])).expect("names");
        assert_eq!(names(&renamed), ["read", "put"]);
        assert_eq!(&**renamed.as_slice()[0].spec().description(), "Reads; see `put`, not rewrite.");
        assert!(list().prefixed(&"x".repeat(300)).is_err());
    }
}
