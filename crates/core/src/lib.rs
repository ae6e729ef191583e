//! Helve's contracts: tools, calls, outcomes, models, permissions, the store.
//!
//! Every other crate of Helve depends on this one, and it depends only on `helve-macros`. It does no input or output.

mod any_error;
mod approval;
mod approver;
pub mod authored;
mod backoff;
mod call;
mod digest;
pub mod environment;
mod error;
mod event;
mod extensions;
pub mod function;
mod ids;
mod input;
pub mod json;
mod layer;
pub mod lookalike;
pub mod mention;
mod message;
mod model;
mod outcome;
mod output_strategy;
mod pattern;
mod permission;
pub mod printable;
mod rules;
mod schema;
pub mod secret;
pub mod source;
mod spec;
pub mod store;
pub mod suggest;
mod tool;
pub mod untrusted;

pub use any_error::{AnyError, Result};
pub use approval::{ApprovalRequest, Grant, Verdict, call_digest, input_digest};
pub use approver::{Approver, Decision, DynApprover, decide_safely};
pub use backoff::Backoff;
pub use call::{CallContext, Caller, ToolCall};
pub use digest::{Digest, DigestError, Digester};
pub use error::{Denial, ErrorKind, KINDS, KindFacts, ToolError};
pub use event::{EndOfRun, Event, EventData, Observer, RunError};
pub use extensions::Extensions;
pub use futures_util::future::BoxFuture;
#[doc(hidden)]
pub use helve_macros::{Name, Setters};
pub use helve_macros::{tool, tools};
pub use ids::{ApprovalId, CallId, ConversationId, HolderId, IdError, RunId};
pub use input::{InputNeeded, InputRequest, InputResponse};
pub use jiff::Timestamp;
pub use layer::{DynLayer, Layer, Next};
pub use message::{Message, MessageBody, Part, ProviderParts, SaidCall, WireForm, wire_id};
pub use model::{
    Deltas, DynModel, EndReason, Feature, GenerateOptions, LanguageModel, ModelDelta, ModelError, ModelFn, ModelInfo, ModelRequest,
    ModelStream, ModelTool, ModelTools, PollDeltas, ToolChoice, Usage, model_fn,
};
pub use outcome::{Outcome, Output, Status};
pub use output_strategy::OutputStrategy;
pub use pattern::Pattern;
pub use permission::{Permission, PermissionRule, Policy, Ruling, Subject};
pub use rules::{CacheRule, Mode, Rules};
pub use schema::{Problem, Schema, SchemaError};
pub use secret::{RedactedPieces, Redactor};
pub use source::{ListSource, Scope, SourceId, SourceState, ToolList, ToolSource};
pub use spec::{Origin, SpecError, ToolKind, ToolSpec};
pub use store::{Store, StoreError};
pub use tokio_util::sync::CancellationToken;
pub use tool::{DynTool, IntoTool, IntoTools, Tool, ToolFn, ToolMethods, ToolResult, TypedTool, tool_fn};

/// Used by code that [`macro@tool`] generates. Not a public API.
#[doc(hidden)]
pub mod __private {
    pub use futures_util::future::BoxFuture;
    pub use {inventory, schemars, serde};

    pub use crate::function;
    pub use crate::{
        CacheRule, CallContext, DynTool, Mode, Output, Permission, Rules, Schema, ToolCall, ToolError, ToolKind, ToolMethods, ToolSpec,
    };
}
