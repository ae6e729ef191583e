//! Talking with an agent at a terminal: reading, showing what happens, asking.

pub mod approval_prompt;
pub mod approver;
pub mod editor;
pub mod markdown;
pub mod preview;
pub mod session;
pub mod show;
pub mod slash;
pub mod spinner;
