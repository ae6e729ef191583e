//! The tools that one agent may use, resolved from sets and names, and their definitions for the model.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use helve_core::mention::Mentions;
use helve_core::store::Approval;
use helve_core::{ApprovalRequest, CallContext, Caller, ModelTool, ModelTools, Outcome, Pattern, Permission, ToolCall};
use serde_json::{Value, json};

use crate::catalogue::{Entry, Snapshot, unknown};
use crate::executor::Executor;
use crate::set::ToolSet;

/// The sets and tools of an agent, as its author wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq, helve_core::Setters)]
pub struct Selection {
    /// The agent's name, for error messages and permission rules.
    pub agent: Option<Arc<str>>,
    /// The tool sets, by name.
    pub sets: Vec<Arc<str>>,
    /// The tools, by name or pattern.
    pub tools: Vec<Pattern>,
    /// Permissions that the agent tightens. An agent cannot loosen permissions.
    pub restrictions: Vec<(Pattern, Permission)>,
}

/// Why a selection cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolkitError {
    /// There is no tool set of this name.
    #[error("there is no tool set `{name}`{hint}")]
    UnknownSet {
        /// The name of the set.
        name: Arc<str>,
        /// A suggestion for the end of the message, or an empty string.
        hint: String,
    },
    /// There is no tool of this name, and no source may still provide it.
    #[error("{message}")]
    UnknownTool {
        /// The name of the tool.
        name: Arc<str>,
        /// The error message, with a suggestion.
        message: String,
    },
}

/// The tools that one agent may use. Immutable and cheap to clone.
#[derive(Clone, Default)]
pub struct Toolkit(Arc<Inner>);

#[derive(Default)]
struct Inner {
    agent: Option<Arc<str>>,
    members: Vec<Member>,
    /// The index of each member, by its name and by its model name.
    by_name: HashMap<Arc<str>, usize>,
    restrictions: Vec<(Pattern, Permission)>,
    missing: Vec<Pattern>,
    model_list: OnceLock<ModelList>,
}

/// One tool of a toolkit.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) entry: Arc<Entry>,
    /// The names of the tool sets that contain the tool.
    pub(crate) sets: Arc<[Arc<str>]>,
}

impl Toolkit {
    /// Creates a toolkit with every tool of a snapshot, for a person or a program that is not an agent.
    #[must_use]
    pub fn everything(snapshot: &Snapshot) -> Self {
        let no_sets: Arc<[Arc<str>]> = Arc::from([]);
        let members = snapshot.iter().map(|entry| Member { entry: entry.clone(), sets: no_sets.clone() }).collect();
        Self::of(Inner { members, ..Inner::default() })
    }

    /// Resolves a selection. An unknown name is an error, unless a source may still provide a tool of that name.
    pub(crate) fn resolve(
        selection: &Selection,
        sets: &[ToolSet],
        snapshot: &Snapshot,
        may_appear: impl Fn(&str) -> bool,
    ) -> Result<Self, ToolkitError> {
        let mut draft =
            Draft { agent: selection.agent.as_deref(), snapshot, may_appear: &may_appear, members: Vec::new(), missing: Vec::new() };
        for name in &selection.sets {
            let set = sets.iter().find(|set| set.name == *name).ok_or_else(|| {
                let hint = helve_core::suggest::did_you_mean(name, sets.iter().map(|set| &*set.name));
                ToolkitError::UnknownSet { name: name.clone(), hint }
            })?;
            for pattern in &set.tools {
                draft.add(pattern, Some(name))?;
            }
        }
        for pattern in &selection.tools {
            draft.add(pattern, None)?;
        }
        let members = draft.members.into_iter().map(|(entry, sets)| Member { entry, sets: sets.into() }).collect();
        let (agent, restrictions) = (selection.agent.clone(), selection.restrictions.clone());
        Ok(Self::of(Inner { agent, members, missing: draft.missing, restrictions, ..Inner::default() }))
    }

    fn of(mut inner: Inner) -> Self {
        inner.by_name.reserve(inner.members.len());
        for (index, member) in inner.members.iter().enumerate() {
            for name in [member.entry.name(), member.entry.model_name()] {
                inner.by_name.entry(name.clone()).or_insert(index);
            }
        }
        Self(Arc::new(inner))
    }

    /// Converts an approval request to its stored form. Returns `None` if the toolkit does not have the tool.
    #[must_use]
    pub fn approval(&self, request: ApprovalRequest) -> Option<Approval> {
        let member = self.member(&request.tool)?;
        let approval = Approval::new(request, member.entry.digest(), member.entry.spec().rules());
        Some(Approval { sets: member.sets.clone(), ..approval })
    }

    /// Returns the toolkit with one more tool. An existing tool of the same name is kept.
    #[must_use]
    pub fn add(&self, entry: Arc<Entry>) -> Self {
        if self.get(entry.name()).is_some() {
            return self.clone();
        }
        let mut members = self.0.members.clone();
        members.push(Member { entry, sets: Arc::from([]) });
        let (agent, restrictions, missing) = (self.0.agent.clone(), self.0.restrictions.clone(), self.0.missing.clone());
        Self::of(Inner { agent, members, restrictions, missing, ..Inner::default() })
    }

    /// Returns whether both are clones of one toolkit.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the name of the agent that the toolkit belongs to.
    #[must_use]
    pub fn agent(&self) -> Option<&Arc<str>> {
        self.0.agent.as_ref()
    }

    /// Returns the caller of a call. The agent of the toolkit takes precedence over the agent in the context.
    pub(crate) fn caller(&self, cx: &CallContext) -> Caller {
        match self.agent() {
            Some(agent) => cx.caller().clone().agent(agent.clone()),
            None => cx.caller().clone(),
        }
    }

    /// Returns a tool by its name or its model name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.member(name).map(|member| &member.entry)
    }

    /// Returns the tools, in order.
    pub fn list(&self) -> impl Iterator<Item = &Arc<Entry>> + Clone {
        self.0.members.iter().map(|member| &member.entry)
    }

    /// Returns the names and patterns that match no tool now, because their source is not connected.
    #[must_use]
    pub fn missing(&self) -> &[Pattern] {
        &self.0.missing
    }

    /// Returns the tool definitions for the model. They are built once.
    #[must_use]
    pub fn model_list(&self) -> &ModelList {
        self.0.model_list.get_or_init(|| ModelList::of(self.list()))
    }

    /// Calls one tool through all layers.
    pub async fn execute(&self, executor: &Executor, tool: &str, arguments: Value, cx: &CallContext) -> Outcome {
        executor.execute(self, ToolCall::new(tool, arguments), cx).await
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.0.by_name.get(name).map(|index| &self.0.members[*index])
    }

    /// Returns the strictest permission that the agent sets for a tool.
    pub(crate) fn restriction(&self, entry: &Entry) -> Permission {
        let named = self.0.restrictions.iter().filter(|(pattern, _)| entry.is_named(pattern));
        named.map(|(_, permission)| *permission).max().unwrap_or_default()
    }

    /// Returns the error message for a tool that is not in the toolkit.
    pub(crate) fn unknown(&self, name: &str) -> String {
        unknown(name, self.0.agent.as_deref(), self.list().map(|entry| &**entry.model_name()))
    }
}

struct Draft<'a> {
    agent: Option<&'a str>,
    snapshot: &'a Snapshot,
    may_appear: &'a dyn Fn(&str) -> bool,
    members: Vec<(Arc<Entry>, Vec<Arc<str>>)>,
    missing: Vec<Pattern>,
}

impl Draft<'_> {
    fn add(&mut self, pattern: &Pattern, set: Option<&Arc<str>>) -> Result<(), ToolkitError> {
        let found: Vec<_> = if pattern.is_literal() {
            self.snapshot.get(pattern.as_str()).into_iter().cloned().collect()
        } else {
            self.snapshot.iter().filter(|entry| entry.is_named(pattern)).cloned().collect()
        };
        if found.is_empty() {
            if pattern.is_literal() && !(self.may_appear)(pattern.as_str()) {
                let message = unknown(pattern.as_str(), self.agent, self.snapshot.iter().map(|entry| &**entry.name()));
                return Err(ToolkitError::UnknownTool { name: pattern.as_str().into(), message });
            }
            self.missing.push(pattern.clone());
        }
        for entry in found {
            let index = self.members.iter().position(|(known, _)| Arc::ptr_eq(known, &entry));
            let (_, sets) = match index {
                Some(index) => &mut self.members[index],
                None => self.members.push_mut((entry, Vec::new())),
            };
            if let Some(set) = set.filter(|set| !sets.contains(set)) {
                sets.push(set.clone());
            }
        }
        Ok(())
    }
}

/// The tool definitions that a model gets.
#[derive(Debug, Clone, Default)]
pub struct ModelList {
    tools: Arc<ModelTools>,
    json: OnceLock<Arc<str>>,
}

impl ModelList {
    fn of<'a>(entries: impl Iterator<Item = &'a Arc<Entry>> + Clone) -> Self {
        // Descriptions may mention other tools of the same source. Renaming a tool must not change the descriptions of other sources.
        let mut renamed: HashMap<_, Vec<(&str, &str)>> = HashMap::new();
        for entry in entries.clone().filter(|entry| entry.name() != entry.model_name()) {
            renamed.entry(entry.source_key()).or_default().push((entry.name(), entry.model_name()));
        }
        let mentions: HashMap<_, Mentions> = renamed.into_iter().map(|(source, names)| (source, Mentions::new(names))).collect();
        let tools = entries.map(|entry| {
            let description = entry.spec().description();
            let rewritten = mentions.get(entry.source_key()).and_then(|mentions| mentions.rewrite(description));
            let description = rewritten.map_or_else(|| description.clone(), Arc::from);
            ModelTool { name: entry.model_name().clone(), description, parameters: entry.spec().input().clone() }
        });
        Self { tools: Arc::new(ModelTools::new(tools.collect())), json: OnceLock::new() }
    }

    /// Returns the tools, in order.
    #[must_use]
    pub fn tools(&self) -> &Arc<ModelTools> {
        &self.tools
    }

    /// Returns the list as JSON: `[{"name", "description", "parameters"}, …]`. The text is built once.
    #[must_use]
    pub fn json(&self) -> &Arc<str> {
        self.json.get_or_init(|| {
            let mut text = String::from("[");
            for (index, tool) in self.tools.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                let (name, description, parameters) = (json!(*tool.name), json!(*tool.description), tool.parameters.text());
                let _ = write!(text, r#"{{"name":{name},"description":{description},"parameters":{parameters}}}"#);
            }
            text.push(']');
            text.into()
        })
    }
}
