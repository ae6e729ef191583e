//! The one path of every call: validate, permit, cache, retry, limit, time out, and layers of your own.
//!
//! ```
//! use helve::executor::{CallState, Next};
//! use helve::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let helve = Helve::new();
//! let call = ToolCall::new("nowhere", json!({}));
//! match helve.executor().call(&helve.toolkit(), call, &CallContext::default()).await {
//!     CallState::Over(outcome) => assert_eq!(outcome.error().map(ToolError::kind), Some(ErrorKind::UnknownTool)),
//!     CallState::Waiting(request) => println!("a person must decide: {}", request.reason),
//! }
//! # }
//! ```

pub use helve_core::{DynLayer, Extensions, Layer, Next};
pub use helve_tools::{ApprovedCall, CacheKey, CallState, Executor, ExecutorOptions};
