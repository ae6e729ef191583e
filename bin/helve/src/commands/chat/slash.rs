//! Slash commands of the chat.

/// The slash commands and their descriptions.
pub const COMMANDS: [(&str, &str); 8] = [
    ("/help", "list all commands"),
    ("/tools", "list the agent's tools"),
    ("/model", "show the model; with a name, switch to it"),
    ("/agent", "show the agent; with a name, switch to it"),
    ("/cost", "show the tokens and cost of the conversation"),
    ("/save", "save the conversation to a file"),
    ("/new", "start a new conversation"),
    ("/quit", "quit"),
];

/// Parses a slash command and its argument. Returns `None` if the line is a prompt for the model.
pub fn parse(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if !line.starts_with('/') || line.starts_with("//") {
        return None;
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}
