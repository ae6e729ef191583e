//! The terminal parts of `helve chat`: what is typed, what is shown.

#![cfg_attr(not(test), expect(dead_code, reason = "the conversation itself is not wired yet"))]

mod markdown;
