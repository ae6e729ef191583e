//! Finds the texts of people, models and tools in stored data. Only these can contain secrets; Helve's own names and numbers cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Approval, DecisionRecord};
use crate::approval::ApprovalRequest;
use crate::call::ToolCall;
use crate::event::{EventData, RunError};
use crate::input::{InputNeeded, InputRequest};
use crate::message::{Message, MessageBody, Part, ProviderParts, SaidCall};
use crate::secret::{Redactor, Rewrite, rewrite_value};

/// Data that contains texts of people, models or tools.
pub(super) trait Texts {
    /// Rewrites every such text in the data.
    fn rewrite(&mut self, how: &dyn Rewrite);
}

impl Texts for String {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        if let Some(text) = how.text(self) {
            *self = text;
        }
    }
}

impl Texts for Arc<str> {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        if let Some(text) = how.text(self) {
            *self = text.into();
        }
    }
}

impl Texts for Value {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        rewrite_value(self, how);
    }
}

impl<T: Texts> Texts for Option<T> {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        if let Some(one) = self {
            one.rewrite(how);
        }
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        for one in self {
            one.rewrite(how);
        }
    }
}

impl<T: Texts> Texts for Box<T> {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        (**self).rewrite(how);
    }
}

impl Texts for BTreeMap<String, Value> {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        for value in self.values_mut() {
            value.rewrite(how);
        }
    }
}

/// Implements [`Texts`] for a struct by rewriting the listed fields.
macro_rules! texts {
    ($($owner:ty { $($field:ident),* })*) => {$(
        impl Texts for $owner {
            fn rewrite(&mut self, how: &dyn Rewrite) {
                $(self.$field.rewrite(how);)*
            }
        }
    )*};
}

texts! {
    ToolCall { arguments, model_id }
    Approval { request, decision }
    ApprovalRequest { call, reason, input }
    DecisionRecord { by, reason, arguments }
    InputNeeded { requests, state }
    InputRequest { key, message, schema, url }
    SaidCall { model_id, tool, arguments }
    ProviderParts { parts }
    RunError { message, hint }
}

impl Texts for Arc<Message> {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        let mut body = self.body().clone();
        body.rewrite(how);
        // An unchanged message is kept, because its wire form is cached.
        if body != *self.body() {
            *self = Self::new(Message::new(body));
        }
    }
}

impl Texts for MessageBody {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        match self {
            Self::System { text } => text.rewrite(how),
            Self::User { parts } => parts.rewrite(how),
            Self::Assistant { text, reasoning, calls, kept } => {
                text.rewrite(how);
                reasoning.rewrite(how);
                calls.rewrite(how);
                kept.rewrite(how);
            }
            Self::Tool { model_id, tool, text, .. } => {
                model_id.rewrite(how);
                tool.rewrite(how);
                text.rewrite(how);
            }
        }
    }
}

impl Texts for Part {
    fn rewrite(&mut self, how: &dyn Rewrite) {
        match self {
            Self::Text { text } => text.rewrite(how),
            Self::Image { data, .. } => data.rewrite(how),
        }
    }
}

/// Masks secrets in an event permanently. No run resumes from an event, so secrets need not be restored.
pub(super) fn mask_event(event: &mut EventData, redactor: &Redactor) {
    match event {
        EventData::RunStarted { input: text, .. } | EventData::RunFinished { text, .. } => text.rewrite(redactor),
        EventData::ModelResponded { text, calls, .. } => {
            text.rewrite(redactor);
            calls.rewrite(redactor);
        }
        EventData::CallDelta { tool, arguments, .. } => {
            tool.rewrite(redactor);
            arguments.rewrite(redactor);
        }
        EventData::TextDelta { text }
        | EventData::ReasoningDelta { text }
        | EventData::StrategyChanged { reason: text, .. }
        | EventData::Notification { message: text }
        | EventData::ToolProgress { message: text, .. }
        | EventData::PermissionResult { by: text, .. } => text.rewrite(redactor),
        EventData::TaskFinished { outcome, .. } | EventData::ToolComplete { outcome, .. } => redactor.clean_outcome(outcome),
        EventData::RunFailed { error } => error.rewrite(redactor),
        EventData::ToolRequested { tool, arguments, .. } => {
            tool.rewrite(redactor);
            arguments.rewrite(redactor);
        }
        EventData::PermissionRequest { arguments, reason, .. } => {
            arguments.rewrite(redactor);
            reason.rewrite(redactor);
        }
        EventData::ModelRequested { .. }
        | EventData::ToolsChanged { .. }
        | EventData::TaskAccepted { .. }
        | EventData::ToolStart { .. }
        | EventData::RunWaiting { .. } => {}
    }
}
