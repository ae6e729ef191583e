//! What documents say about the code, held against the code: the commands and files that they show, paths, names and words.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod commands;
#[path = "../folder.rs"]
mod folder;
mod names;
mod output;
mod pages;
mod words;
