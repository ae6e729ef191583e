//! What an attack found, through the binary: each test breaks a promise of `docs/security.md` the way the attack did, and sees that it holds.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod consent;
mod dialects;
mod doors;
#[path = "../folder.rs"]
mod folder;
mod folders;
mod links;
mod partly_trusted;
mod programs;
mod quoted_calls;
#[allow(dead_code, reason = "the tests of runs use the rest")]
#[path = "../runs/scene.rs"]
mod scene;
mod secrets;
mod stores;
mod trap;
#[cfg(unix)]
mod untrusted;
mod variables;
