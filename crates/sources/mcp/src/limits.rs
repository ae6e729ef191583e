//! How much is taken from a server.

use std::time::Duration;

/// The longest message.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;
/// How long is waited for the first word of a server that may not know the question.
pub(crate) const PROBE: Duration = Duration::from_secs(10);
/// How long is waited for answers that no tool is behind: greetings and lists.
pub(crate) const GREETING: Duration = Duration::from_secs(30);
/// The longest instructions of a server.
pub(crate) const MAX_INSTRUCTIONS: usize = 64 << 10;
/// How long is waited until a server knows that it is listened to.
pub(crate) const LISTENING: Duration = Duration::from_secs(1);
