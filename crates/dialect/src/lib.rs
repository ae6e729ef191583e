//! Parses tool calls in the output of language models, and writes prompts that teach models to call tools.

#![doc = include_str!("../README.md")]

mod call;
mod dialect;
mod event;
mod fault;
mod find;
mod format;
mod formats;
mod json;
mod profile;
#[cfg(feature = "prompt")]
mod prompt;
mod quoted;
mod reader;
mod repair;
mod scan;
mod tools;
mod types;
mod work;
mod write;
mod xml;

pub use dialect::Dialect;
pub use event::{Call, Content, Event, EventKind, Item, Items, Malformed, Mode};
pub use fault::FaultKind;
#[cfg(feature = "prompt")]
pub use prompt::{
    COMPACT_ABOVE, Choice, Language, MAX_DESCRIPTION, MAX_PARAMETER_DESCRIPTION, Prompt, PromptFormat, PromptResult, PromptTool,
    answer_text,
};
pub use quoted::QuotedCalls;
pub use reader::{CallDelta, Delta, Reader};
pub use repair::{Repair, Repairs};
pub use scan::{Scanner, parse};
pub use tools::ToolTable;
pub use write::WrittenCall;
