//! The attribute macros `#[tool]`, which turns a function into a tool, and `#[tools]`, which turns the methods of a type into tools.
//!
//! `attributes.rs` parses the attributes, `signature.rs` and `parameter.rs` parse the function. `expand.rs` generates the code, and
//! `expand/methods.rs` the code for methods. Generated code uses `helve_core::function`. `derive.rs` contains derives for Helve's own
//! types.

mod attributes;
mod derive;
mod documentation;
mod expand;
mod parameter;
mod problems;
mod self_name;
mod signature;

use proc_macro::TokenStream;

/// Turns a function into a tool. The function itself does not change and can still be called.
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
/// The macro adds a type `add` with the function `add::tool()`. `function::linked` returns all such tools of a program.
///
/// # The function
///
/// - The doc comment of the function is the description for the model. The doc comment of a parameter describes that argument.
/// - An `async fn` runs on the async runtime. A plain `fn` may block, because it runs on a thread pool.
/// - The function returns a type that can be serialised, an `Output`, or a `Result` of these with an error that implements `Display`.
///   With `helve::Result<T>`, `?` converts any error. A `ToolError` keeps its kind, even inside another error.
///
/// # Parameters
///
/// - Arguments are deserialised from JSON: each type implements `serde::Deserialize` and `schemars::JsonSchema` and owns its
///   data (`String`, not `&str`).
/// - A parameter of type `Option<T>` is optional. A parameter with `#[default(value)]` is also optional, and the model reads the value;
///   `#[default]` alone means `Default::default()`.
/// - `#[schemars(...)]` adds to the schema of an argument, such as `#[schemars(range(min = 1, max = 10))]`.
/// - A `CallContext` or `&CallContext` is not an argument: the runtime passes it.
/// - With `#[flatten]`, as in `#[flatten] order: Order`, the fields of the struct are the arguments. No other argument is allowed.
/// - A leading underscore or `r#` is not part of an argument's name.
///
/// # Attributes
///
/// | attribute | meaning |
/// |---|---|
/// | `name = "x"` | the tool's name; by default the name of the function |
/// | `title = "x"` | the display name |
/// | `description = "x"` | the description for the model, instead of the doc comment |
/// | `permission = "confirm"` | whether calls need approval: `auto`, `confirm` or `deny` |
/// | `timeout = "30s"` | timeout of one attempt |
/// | `idempotent` | repeating a call has the same effect as running it once |
/// | `retries = 3` | maximum number of retries after a transient error; only for idempotent tools |
/// | `cache = "5m"` | how long results are cached; separately for each caller if the function takes a `CallContext` |
/// | `cache_per_caller` | results are always cached separately for each caller |
/// | `background` | calls go into the queue, and the caller gets the result later |
/// | `priority = 5` | priority in the background queue, from -10 to 10; by default 0 |
/// | `delay = "10m"` | minimum delay before a background call starts |
/// | `exclusive` | no other call of the same turn runs at the same time |
/// | `ends_run` | a successful call ends the agent's run, with the call's text as the answer |
/// | `concurrency = 4` | maximum number of concurrent calls to the tool |
/// | `output` | declares the schema of the return type; Helve validates results against it |
/// | `validate = check` | a function that takes references to the arguments and returns `Result<(), E>`; it runs before approval |
/// | `crate = helve_core` | the path of the runtime crate; by default `::helve` |
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attributes.into(), item.into()).into()
}

/// Turns the methods with `#[tool]` into tools. All tools share one value of the type.
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
///     /// Returns the count.
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
/// Doc comments, parameters and attributes work as in [`macro@tool`]. A method takes `&self`, or no `self` at all. `validate = self.check`
/// names a method, `validate = check` a function. Methods without `#[tool]` do not change.
///
/// `agent.register_tools(value)` and `catalogue.register_all(value)` take the value, or an `Arc` of it if the program keeps using the
/// value. `#[tools(crate = helve_core)]` sets the path of the runtime crate for all methods.
#[proc_macro_attribute]
pub fn tools(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand::tools(attributes.into(), item.into()).into()
}

/// Derives a setter for each field, for Helve's own option structs.
#[doc(hidden)]
#[proc_macro_derive(Setters, attributes(setter))]
pub fn setters(item: TokenStream) -> TokenStream {
    derived(item, derive::setters)
}

/// Derives the method `name`, for Helve's own enums.
#[doc(hidden)]
#[proc_macro_derive(Name)]
pub fn name(item: TokenStream) -> TokenStream {
    derived(item, derive::name)
}

fn derived(item: TokenStream, derive: fn(&syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    syn::parse(item).and_then(|item| derive(&item)).unwrap_or_else(syn::Error::into_compile_error).into()
}
