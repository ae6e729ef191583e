//! What a person can say to the chat itself.

/// The commands, with what they do.
pub const COMMANDS: [(&str, &str); 8] = [
    ("/help", "what can be said here"),
    ("/tools", "the tools the agent may use"),
    ("/model", "the model; with a name, another one from now on"),
    ("/agent", "the agent; with a name, another one from now on"),
    ("/cost", "what the conversation cost"),
    ("/save", "write the conversation to a file"),
    ("/new", "begin another conversation"),
    ("/quit", "leave"),
];

/// A command and what stands behind it; nothing where the line is meant for the model.
pub fn read(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if !line.starts_with('/') || line.starts_with("//") {
        return None;
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}
