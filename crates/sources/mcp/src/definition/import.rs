//! Imports servers from the configuration files of other clients: Claude Desktop, Cursor, VS Code.

use helve_core::secret::is_secret_variable;
use serde_json::{Map, Value};

use super::new_server::NewServer;

/// Maximum size of an imported file in bytes.
const MAX_BYTES: usize = 1 << 20;

/// A server that was imported from the configuration file of another client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedServer {
    /// The server, ready to be written into a project.
    pub server: NewServer,
    /// Notes for the user, such as variables to set.
    pub notes: Vec<String>,
}

/// Imports the servers in the text of a configuration file. An entry is an error if that server cannot be imported.
///
/// Replaces the values of secret variables and headers with references to environment variables.
///
/// # Errors
/// Returns an error if the text is too large, is not valid JSON, or contains no list of servers.
pub fn import(text: &str) -> Result<Vec<Result<ImportedServer, String>>, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the file is larger than {MAX_BYTES} bytes"));
    }
    let value: Value = serde_json::from_str(&without_comments(text)).map_err(|error| format!("invalid JSON: {error}"))?;
    let servers = ["/mcpServers", "/servers", "/mcp/servers"].iter().find_map(|path| value.pointer(path)?.as_object());
    let servers = servers.ok_or("it has neither `mcpServers` nor `servers`")?;
    Ok(servers.iter().map(|(name, entry)| read(name, entry).map_err(|why| format!("the server `{name}`: {why}"))).collect())
}

fn read(name: &str, entry: &Value) -> Result<ImportedServer, String> {
    let entry = entry.as_object().ok_or("its entry is not a JSON object")?;
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    let mut notes = Vec::new();
    let mut server = NewServer { name: file_name(name), ..NewServer::default() };
    if server.name != name {
        notes.push(format!("it is renamed to `{}`", server.name));
    }
    if let Some(url) = text("url").or_else(|| text("serverUrl")) {
        server.url = Some(translate_variables(url, &mut notes));
        for (name, value) in strings(entry.get("headers")) {
            let secret = is_secret_variable(&name.replace('-', "_").to_ascii_uppercase()) || name.eq_ignore_ascii_case("authorization");
            let value = if secret {
                from_environment(&variable(&server.name, &name), &value, &mut notes)
            } else {
                translate_variables(&value, &mut notes)
            };
            server.headers.push((name, value));
        }
    } else {
        server.command.push(translate_variables(text("command").ok_or("it has neither a `command` nor a `url`")?, &mut notes));
        let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        server.command.extend(arguments.map(|argument| translate_variables(argument, &mut notes)).collect::<Vec<_>>());
        for (name, value) in strings(entry.get("env")) {
            let value = if is_secret_variable(&name) {
                from_environment(&name, &value, &mut notes)
            } else {
                translate_variables(&value, &mut notes)
            };
            server.env.push(format!("{name}={value}"));
        }
    }
    if entry.get("disabled").and_then(Value::as_bool) == Some(true) {
        notes.push("it is disabled in the imported file".to_owned());
    }
    Ok(ImportedServer { server, notes })
}

fn strings(map: Option<&Value>) -> Vec<(String, String)> {
    let map = map.and_then(Value::as_object);
    let of = |map: &Map<String, Value>| map.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    map.map(of).unwrap_or_default()
}

/// Returns a reference to an environment variable that replaces a secret, and adds a note to set the variable.
fn from_environment(name: &str, value: &str, notes: &mut Vec<String>) -> String {
    let (before, bare) = value
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map_or(("", value), |(_, bare)| ("Bearer ", bare));
    if bare.starts_with("${") {
        return format!("{before}{}", translate_variables(bare, notes));
    }
    let without = if before.is_empty() { "" } else { ", without the word `Bearer`" };
    notes.push(format!("set {name} in the environment{without}; its value was not copied"));
    format!("{before}${{{name}}}")
}

/// Returns the name of the environment variable for a secret header of a server.
fn variable(server: &str, header: &str) -> String {
    let word = |text: &str| {
        text.chars()
            .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
            .collect::<String>()
    };
    format!("{}_{}", word(server), word(header))
}

/// Translates the variables of other clients, such as `${env:NAME}` and `${input:name}`, to Helve's syntax `${NAME}`.
fn translate_variables(text: &str, notes: &mut Vec<String>) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        words.push_str(before);
        let Some(end) = after.find('}') else { break };
        let inside = &after[2..end];
        let name = match inside.split_once(':') {
            Some(("input", name)) => {
                let name = variable("INPUT", name);
                notes.push(format!("set {name} in the environment; the imported file prompts for it"));
                name
            }
            Some(("env", name)) => name.to_owned(),
            _ if inside == "workspaceFolder" => {
                words.push('.');
                rest = &after[end + 1..];
                continue;
            }
            _ => inside.to_owned(),
        };
        words.extend(["${", &name, "}"]);
        rest = &after[end + 1..];
    }
    words.push_str(rest);
    words
}

/// Converts the name of a server to a valid file name.
fn file_name(name: &str) -> String {
    let fits = |character: char| if character.is_ascii_alphanumeric() || "_-.".contains(character) { character } else { '_' };
    let mapped: String = name.chars().map(fits).take(64).collect();
    if mapped.starts_with('.') || mapped.is_empty() { format!("_{mapped}").chars().take(64).collect() } else { mapped }
}

/// Removes the comments and trailing commas that editors allow in JSON.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut in_text = false;
    while let Some(character) = characters.next() {
        match (in_text, character, characters.peek()) {
            (true, '\\', _) => {
                plain.push(character);
                plain.extend(characters.next());
            }
            (_, '"', _) => {
                in_text = !in_text;
                plain.push(character);
            }
            (false, '/', Some('/')) => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
            }
            (false, '/', Some('*')) => {
                characters.next();
                let mut before = ' ';
                for next in characters.by_ref() {
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
            }
            (false, '}' | ']', _) => {
                if plain.trim_end().ends_with(',') {
                    plain.truncate(plain.trim_end().len() - 1);
                }
                plain.push(character);
            }
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Vec<(NewServer, Vec<String>)> {
        import(text)
            .expect("a file")
            .into_iter()
            .map(|imported| imported.expect("a server"))
            .map(|imported| (imported.server, imported.notes))
            .collect()
    }

    #[test]
    fn a_file_of_claude_desktop_or_cursor_is_read() {
        let found = servers(
            r#"{"mcpServers": {"my files": {"command": "npx", "args": ["-y", "server", "/tmp"], "env": {"LEVEL": "debug", "API_KEY": "s3cr3t"}},
                "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer abc", "X-Team": "a"}}}}"#,
        );
        assert_eq!(
            found[0].0.yaml(),
            "name: \"my_files\"\ncommand: [\"npx\",\"-y\",\"server\",\"/tmp\"]\nenv: [\"LEVEL=debug\",\"API_KEY=${API_KEY}\"]\n"
        );
        assert_eq!(found[0].1, ["it is renamed to `my_files`", "set API_KEY in the environment; its value was not copied"]);
        assert_eq!(
            found[1].0.yaml(),
            "name: \"docs\"\nurl: \"https://example.com/mcp\"\nheaders: {\"Authorization\":\"Bearer ${DOCS_AUTHORIZATION}\",\"X-Team\":\"a\"}\n"
        );
    }

    #[test]
    fn a_file_of_vs_code_is_read_with_its_comments_and_inputs() {
        let found = servers(
            r#"{ // servers
              "inputs": [{"id": "key"}], /* asked
              for */ "servers": {"a": {"type": "stdio", "command": "x", "args": ["--root", "${workspaceFolder}/b", "//no comment",],
                "env": {"API_KEY": "${input:key}", "HOST": "${env:MY_HOST}"}}, } }"#,
        );
        assert_eq!(found[0].0.command, ["x", "--root", "./b", "//no comment"]);
        assert_eq!(found[0].0.env, ["API_KEY=${INPUT_KEY}", "HOST=${MY_HOST}"]);
        assert_eq!(found[0].1, ["set INPUT_KEY in the environment; the imported file prompts for it"]);
    }

    #[test]
    fn what_is_no_such_file_says_why() {
        for (text, why) in [("{", "invalid JSON"), ("{}", "neither `mcpServers` nor `servers`")] {
            let error = import(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        let found = import(r#"{"mcpServers": {"a": {}, "b": {"command": "x"}, "c": 3}}"#).expect("a file");
        assert_eq!(found[0], Err("the server `a`: it has neither a `command` nor a `url`".to_owned()));
        assert!(found[1].is_ok(), "one mistake costs no other server");
        assert!(found[2].as_ref().is_err_and(|why| why.contains("its entry is not a JSON object")));
    }
}
