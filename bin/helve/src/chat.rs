//! The terminal parts of `helve chat`: what is typed, what is shown.

#![expect(dead_code, reason = "the conversation itself is not wired yet")]

mod editor;
mod markdown;
mod preview;
mod question;
mod spinner;
