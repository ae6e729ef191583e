//! The layers of a call, one per file. Only `executor.rs` defines their order.

pub(crate) mod cache;
pub(crate) mod catch;
pub(crate) mod check_output;
pub(crate) mod defer;
pub(crate) mod limit;
pub(crate) mod permit;
pub(crate) mod retry;
pub(crate) mod secrets;
pub(crate) mod timeout;
pub(crate) mod trace;
pub(crate) mod validate;
