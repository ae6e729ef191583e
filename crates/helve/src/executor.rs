//! The executor: runs every call through one pipeline.
//!
//! The executor validates the arguments, checks permissions, looks up the cache, queues background calls, retries, limits concurrency and
//! enforces timeouts. Add your own [`Layer`] with [`HelveBuilder::layer`](crate::HelveBuilder::layer). A call that needs approval
//! returns [`CallState::Waiting`] with the approval request.
//!
//! ```
//! use helve::executor::CallState;
//! use helve::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let helve = Helve::new();
//! let call = ToolCall::new("missing", json!({}));
//! match helve.executor().call(&helve.toolkit(), call, &CallContext::default()).await {
//!     CallState::Over(outcome) => assert_eq!(outcome.error().map(ToolError::kind), Some(ErrorKind::UnknownTool)),
//!     CallState::Waiting(request) => println!("a person must decide: {}", request.reason),
//! }
//! # }
//! ```

pub use helve_core::{DynLayer, Extensions, Layer, Next};
pub use helve_tools::{ApprovedCall, CacheKey, CallState, Executor, ExecutorOptions};
