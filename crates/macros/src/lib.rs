//! `#[tool]`: makes a tool of a plain function. `#[tools]`: makes tools of the methods of a type.
//!
//! The attribute is read in `attributes.rs`, the function in `signature.rs` and `parameter.rs`, and what comes out is
//! written in `expand.rs`; blocks of methods are taken apart in `expand/methods.rs`. What the generated code stands on is
//! `helve_core::function`.

mod attributes;
mod derive;
mod documentation;
mod expand;
mod parameter;
mod problems;
mod self_name;
mod signature;

use proc_macro::TokenStream;

/// Makes a tool of a function. The function stays what it was and can still be called.
///
/// ```
/// use helve_core::{CallContext, DynTool, ToolCall, tool};
///
/// /// Adds two numbers.
/// #[tool(idempotent, timeout = "5s", crate = helve_core)]
/// async fn add(
///     /// The first number.
///     a: i64,
///     /// The second number.
///     #[default(10)]
///     b: i64,
///     note: Option<String>,
///     cx: &CallContext,
/// ) -> i64 {
///     cx.progress(None, note.unwrap_or_default());
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), helve_core::ToolError> {
/// let tool = add::tool();
/// assert_eq!(tool.spec().name().as_ref(), "add");
/// assert_eq!(tool.spec().description().as_ref(), "Adds two numbers.");
///
/// let call = ToolCall::from_json("add", br#"{"a": 1}"#)?;
/// assert_eq!(tool.call(&call, &CallContext::default()).await?.text, "11");
/// # Ok(())
/// # }
/// ```
///
/// Beside the function `add` there is then a type `add` with `add::tool()`, and `function::linked` finds the tool
/// without being told of it.
///
/// # The function
///
/// - Its doc comment is what the model reads about the tool; the doc comment of a parameter describes that argument.
/// - An `async fn` runs where it is awaited. A plain `fn` may block: it runs on a thread for such work.
/// - It returns anything that can be serialised, an `Output`, or a `Result` of these with an error that can be shown.
///   With `helve::Result<T>`, `?` takes any error. A `ToolError` keeps its kind, also inside another error.
///
/// # Parameters
///
/// - Arguments come from JSON: each type implements `serde::Deserialize` and `schemars::JsonSchema` and owns what it
///   holds (`String`, not `&str`).
/// - `Option<T>` may be left out. So may a parameter with `#[default(value)]`, and the model is told the value;
///   `#[default]` alone means `Default::default()`.
/// - `#[schemars(...)]` says more about an argument to the model, such as `#[schemars(range(min = 1, max = 10))]`.
/// - A `CallContext` or `&CallContext` is handed in and no argument.
/// - The fields of a struct with `#[flatten]` are the arguments: `#[flatten] order: Order`. It is then the only argument.
/// - A leading underscore is no part of an argument's name, and neither is `r#`.
///
/// # Attributes
///
/// | attribute | meaning |
/// |---|---|
/// | `name = "x"` | the tool's name, where it is not the function's |
/// | `title = "x"` | a title for people |
/// | `description = "x"` | what the model reads instead of the doc comment |
/// | `permission = "confirm"` | whether a person is asked first: `auto`, `confirm` or `deny` |
/// | `timeout = "30s"` | how long one attempt may take |
/// | `idempotent` | running the same call twice does no more than running it once |
/// | `retries = 3` | how often a transient failure is tried again; only for an idempotent tool |
/// | `cache = "5m"` | how long a result is kept; by caller where the function takes a `CallContext` |
/// | `cache_per_caller` | results are kept by caller although the function takes no `CallContext` |
/// | `background` | the caller does not wait for the end |
/// | `priority = 5` | in the background: who goes first, from -10 to 10; 0 is usual |
/// | `delay = "10m"` | in the background: how long a call waits at least |
/// | `exclusive` | no other call of the same turn runs beside it |
/// | `ends_run` | a call that ends well ends the agent's run, with its text as the answer |
/// | `concurrency = 4` | how many calls may run at once |
/// | `output` | the return type's schema is promised to callers, and results are checked against it |
/// | `validate = check` | a function that takes references to the arguments and returns a `Result<(), E>`; it runs before a person is asked |
/// | `crate = helve_core` | the path of the runtime, where it is not `::helve` |
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attributes.into(), item.into()).into()
}

/// Makes tools of those methods of a type that have `#[tool]`. They share one value of the type.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use helve_core::{CallContext, IntoTools, Result, ToolCall, tools};
///
/// #[derive(Default)]
/// struct Counter {
///     count: AtomicU64,
/// }
///
/// #[tools(crate = helve_core)]
/// impl Counter {
///     /// Counts up.
///     #[tool(validate = self.check)]
///     async fn count_up(&self, #[default(1)] by: u64) -> u64 {
///         self.count.fetch_add(by, Ordering::Relaxed) + by
///     }
///
///     /// Says how far it has counted.
///     #[tool(idempotent)]
///     async fn count(&self) -> u64 {
///         self.count.load(Ordering::Relaxed)
///     }
///
///     fn check(&self, by: &u64) -> Result<(), String> {
///         let left = 100_u64.saturating_sub(self.count.load(Ordering::Relaxed));
///         if *by > left { Err(format!("only {left} are left")) } else { Ok(()) }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let tools = Counter::default().into_tools()?;
/// let cx = CallContext::default();
/// tools[0].call(&ToolCall::from_json("count_up", b"{\"by\": 5}")?, &cx).await?;
/// assert_eq!(tools[1].call(&ToolCall::from_json("count", b"")?, &cx).await?.text, "5");
/// # Ok(())
/// # }
/// ```
///
/// Everything that [`macro@tool`] says of functions holds for the methods: doc comments, parameters, attributes. They take `&self`, or no
/// `self` at all. `validate = self.check` names a method, `validate = check` a function. All other methods stay as they are.
///
/// `agent.register_tools(value)` and `catalogue.register_all(value)` take the value, or an `Arc` of it for programs that go on using it. A
/// runtime that is not at `::helve` is named once: `#[tools(crate = helve_core)]`.
#[proc_macro_attribute]
pub fn tools(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand::tools(attributes.into(), item.into()).into()
}

/// Writes a setter for each field. For Helve's own option structs.
#[doc(hidden)]
#[proc_macro_derive(Setters, attributes(setter))]
pub fn setters(item: TokenStream) -> TokenStream {
    derived(item, derive::setters)
}

/// Writes a method `name`. For Helve's own enums.
#[doc(hidden)]
#[proc_macro_derive(Name)]
pub fn name(item: TokenStream) -> TokenStream {
    derived(item, derive::name)
}

fn derived(item: TokenStream, derive: fn(&syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    syn::parse(item).and_then(|item| derive(&item)).unwrap_or_else(syn::Error::into_compile_error).into()
}
