//! All wires, side by side.

mod bounds;
mod fixtures;
mod requests;
mod usage;

use crate::{Anthropic, Gemini, OpenAiChat, OpenAiResponses, Wire};

/// Every wire, with its quirks at their defaults.
fn wires() -> [Box<dyn Wire>; 4] {
    [Box::new(Anthropic), Box::new(Gemini), Box::new(OpenAiChat::default()), Box::new(OpenAiResponses::default())]
}

/// Compares with `tests/snapshots/{name}.snap`.
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../tests/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
