//! Closures as tools, for tools that are only known at run time, and for tests.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::into_tool::{input_schema, kind};
use super::{DynTool, IntoTool};
use crate::any_error;
use crate::call::{CallContext, ToolCall};
use crate::error::ToolError;
use crate::function::{self, IntoOutput};
use crate::outcome::Output;
use crate::permission::Permission;
use crate::rules::{Mode, Rules};
use crate::schema::Schema;
use crate::spec::{SpecError, ToolSpec};

/// Creates a tool from a closure. The schema comes from the type of the arguments, or from [`ToolFn::schema`].
///
/// ```
/// use helve_core::{IntoTool, tool_fn};
/// use serde_json::{Value, json};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = tool_fn("add", "Adds two numbers.", |args: Add, _| async move { Ok(args.a + args.b) }).idempotent();
///
/// // A schema that is only known at run time.
/// let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
/// let greet = tool_fn("greet", "Greets.", |args: Value, _| async move { Ok(format!("Hello, {}!", args["name"])) }).schema(schema);
/// # (add.into_tool()?, greet.into_tool()?);
/// # Ok::<(), helve_core::SpecError>(())
/// ```
///
/// The closure takes an owned [`CallContext`] and returns a future of a [`helve::Result`](crate::Result), in which `?` converts any error.
/// Clone shared values, such as an `Arc` of a pool, into the future. Without shared values, an `async` closure also works.
pub fn tool_fn<A, F, R, T>(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>, work: F) -> ToolFn<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = any_error::Result<T>> + Send,
    T: IntoOutput,
{
    ToolFn {
        name: name.into(),
        description: description.into(),
        title: None,
        input: None,
        output: None,
        rules: Rules::default(),
        check: None,
        work,
        arguments: PhantomData,
    }
}

type Check<A> = dyn Fn(&A) -> any_error::Result<()> + Send + Sync;

/// A closure that can be registered as a tool. Its methods have the names of the attributes of `#[tool]`.
#[must_use = "a tool does nothing until it is registered"]
pub struct ToolFn<A, F> {
    name: Arc<str>,
    description: Arc<str>,
    title: Option<String>,
    input: Option<Value>,
    output: Option<Schema>,
    rules: Rules,
    check: Option<Box<Check<A>>>,
    work: F,
    arguments: PhantomData<fn() -> A>,
}

impl<A, F> ToolFn<A, F> {
    /// Sets the JSON Schema of the arguments. Use it if the type of the arguments has no useful schema. Helve checks the schema when the
    /// tool is registered.
    pub fn schema(mut self, schema: Value) -> Self {
        self.input = Some(schema);
        self
    }

    /// Declares the schema of the result, from its type. Helve validates results against it.
    pub fn output<R, T>(mut self) -> Self
    where
        F: Fn(A, CallContext) -> R,
        R: Future<Output = any_error::Result<T>>,
        T: JsonSchema,
    {
        self.output = Some(Schema::of::<T>());
        self
    }

    /// Rejects arguments that match the schema but make no sense, before Helve asks a person for approval. The call fails with
    /// `invalid_parameters`, or with the kind of the returned [`ToolError`] if that is not `failed`.
    pub fn validate(mut self, check: impl Fn(&A) -> any_error::Result<()> + Send + Sync + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets all rules at once.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets whether calls need approval.
    pub fn permission(mut self, permission: Permission) -> Self {
        self.rules.permission = permission;
        self
    }

    /// Sets the timeout of one attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.rules.timeout = Some(timeout);
        self
    }

    /// Declares that repeating a call has the same effect as running it once.
    pub fn idempotent(mut self) -> Self {
        self.rules.idempotent = true;
        self
    }

    /// Makes calls run in the background.
    pub fn background(mut self) -> Self {
        self.rules.mode = Mode::Background;
        self
    }
}

impl<A, F> fmt::Debug for ToolFn<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolFn").field("name", &self.name).field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl<A, F, R, T> IntoTool<kind::Closure> for ToolFn<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = any_error::Result<T>> + Send,
    T: IntoOutput,
{
    fn into_tool(self) -> Result<Arc<dyn DynTool>, SpecError> {
        let name = self.name;
        let input = match self.input {
            Some(schema) => input_schema(&name, schema)?,
            None => function::input::<A>(),
        };
        let mut spec = ToolSpec::new(name, self.description, input)?.with_rules(self.rules);
        if let Some(title) = self.title {
            spec = spec.with_title(title);
        }
        if let Some(output) = self.output {
            spec = spec.with_output(output);
        }
        Ok(Arc::new(ClosureAdapter { spec: spec.share(), work: self.work, check: self.check }))
    }
}

struct ClosureAdapter<A, F> {
    spec: Arc<ToolSpec>,
    work: F,
    check: Option<Box<Check<A>>>,
}

impl<A, F, R, T> DynTool for ClosureAdapter<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = any_error::Result<T>> + Send,
    T: IntoOutput,
{
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { (self.work)(function::arguments(call)?, cx.clone()).await?.into_output() })
    }

    fn validate(&self, call: &ToolCall) -> Result<(), ToolError> {
        match &self.check {
            Some(check) => function::checked(check(&function::arguments(call)?).map_err(ToolError::from)),
            None => Ok(()),
        }
    }
}
