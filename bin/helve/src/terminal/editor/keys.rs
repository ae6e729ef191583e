//! Key bindings that differ from those of a shell: Alt-Enter and Ctrl-J insert a newline, and Ctrl-C clears the line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::history::History;
use rustyline::{
    Cmd, ConditionalEventHandler, Event, EventContext, EventHandler, Helper, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};

/// Binds the keys. `cleared` is set when Ctrl-C clears a line.
pub fn bind<H: Helper, I: History>(editor: &mut rustyline::Editor<H, I>, cleared: &Arc<AtomicBool>) {
    for key in [KeyEvent(KeyCode::Enter, Modifiers::ALT), KeyEvent::ctrl('J')] {
        editor.bind_sequence(key, EventHandler::Simple(Cmd::Newline));
    }
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(Interrupt(cleared.clone()))));
}

/// The handler of Ctrl-C: clears the line, or interrupts as usual if the line is empty.
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
