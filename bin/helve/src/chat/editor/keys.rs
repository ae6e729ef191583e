//! The keys that mean something else than in a shell: those that make a new line, and Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::history::History;
use rustyline::{
    Cmd, ConditionalEventHandler, Event, EventContext, EventHandler, Helper, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};

/// Binds the keys. `cleared` is told when Ctrl-C has cleared a line.
pub fn bind<H: Helper, I: History>(editor: &mut rustyline::Editor<H, I>, cleared: &Arc<AtomicBool>) {
    for key in [KeyEvent(KeyCode::Enter, Modifiers::ALT), KeyEvent::ctrl('J')] {
        editor.bind_sequence(key, EventHandler::Simple(Cmd::Newline));
    }
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(Interrupt(cleared.clone()))));
}

/// Clears the line; on an empty one it is what it always is.
struct Interrupt(Arc<AtomicBool>);

impl ConditionalEventHandler for Interrupt {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, cx: &EventContext) -> Option<Cmd> {
        if cx.line().is_empty() {
            return None;
        }
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::Kill(Movement::WholeBuffer))
    }
}
