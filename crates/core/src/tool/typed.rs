//! Tools as types, with Rust types for arguments and result. All calls share the value.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::into_tool::kind;
use super::{DynTool, IntoTool};
use crate::any_error;
use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::function::{self, IntoOutput};
use crate::outcome::Output;
use crate::spec::{SpecError, ToolSpec};

/// A tool with state, whose arguments and result are Rust types. For several tools that share a value, see `#[tools]`.
///
/// ```
/// use helve_core::{CallContext, Result, Rules, ToolSpec, TypedTool};
/// use std::path::PathBuf;
///
/// struct Notes {
///     folder: PathBuf,
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Note {
///     /// The name of the note.
///     name: String,
/// }
///
/// impl TypedTool for Notes {
///     const NAME: &'static str = "read_note";
///     const DESCRIPTION: &'static str = "Reads a note.";
///     type Args = Note;
///     type Output = String;
///
///     async fn call(&self, note: Note, _cx: &CallContext) -> Result<String> {
///         Ok(std::fs::read_to_string(self.folder.join(note.name))?)
///     }
///
///     fn configure(&self, spec: ToolSpec) -> ToolSpec {
///         spec.with_rules(Rules { idempotent: true, ..Rules::default() })
///     }
/// }
/// ```
pub trait TypedTool: Send + Sync + 'static {
    /// The tool's name for the model.
    const NAME: &'static str;

    /// The description for the model.
    const DESCRIPTION: &'static str;

    /// The type of the arguments: a struct. The model reads its fields and their doc comments.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// The type of the result: any type that can be serialised, or [`Output`].
    type Output: IntoOutput;

    /// Runs the tool. Implement it as an `async fn`; `?` converts any error.
    fn call(&self, args: Self::Args, cx: &CallContext) -> impl Future<Output = any_error::Result<Self::Output>> + Send;

    /// Rejects arguments that match the schema but make no sense. Helve calls this before it asks a person for approval, and again each
    /// time it validates the call.
    ///
    /// # Errors
    /// The call fails with the returned error. The kind `failed` becomes `invalid_parameters`.
    fn validate(&self, args: &Self::Args) -> Result<(), ToolError> {
        let _ = args;
        Ok(())
    }

    /// Completes the spec with a title, an output schema, and rules such as permission and timeout.
    fn configure(&self, spec: ToolSpec) -> ToolSpec {
        spec
    }
}

impl<T: TypedTool> IntoTool<kind::Typed> for T {
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError> {
        let spec = ToolSpec::new(T::NAME, T::DESCRIPTION, function::input::<T::Args>())?;
        let spec = self.configure(spec).share();
        Ok(Arc::new(TypedAdapter { spec, tool: self }))
    }
}

struct TypedAdapter<T> {
    spec: Arc<ToolSpec>,
    tool: T,
}

impl<T: TypedTool> DynTool for TypedAdapter<T> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { self.tool.call(function::arguments(call)?, cx).await?.into_output() })
    }

    fn validate(&self, call: &ToolCall) -> Result<(), ToolError> {
        function::checked(self.tool.validate(&function::arguments(call)?))
    }
}
