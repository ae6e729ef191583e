//! `helve mcp import`: servers out of the files of other clients.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use helve::internal::printable;
use helve::mcp::import;
use serde_json::{Value, json};

use crate::cli::Global;
use crate::cli::mcp::Import;
use crate::failure::Failure;
use crate::terminal::{self, CAREFUL, FAINT, GOOD, styled};
use crate::workspace::Workspace;

/// Where other clients keep their servers: in the project, and in the user's home.
const PLACES: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
const HOME_PLACES: [&str; 4] = [
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".config/Code/User/mcp.json",
];

/// Writes a file for each server. Nothing that is there is overwritten.
pub fn run(command: &Import, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let root = workspace.report().root.clone();
    let file = match &command.file {
        Some(file) => file.clone(),
        None => only_place(&root)?,
    };
    let text = std::fs::read_to_string(&file)
        .map_err(|error| Failure::new("not_found", format_args!("{} cannot be read: {error}", file.display())))?;
    let found = import(&text).map_err(|why| Failure::new("bad_request", format_args!("{}: {why}", file.display())))?;
    let is_named = |name: &str| command.names.is_empty() || command.names.iter().any(|wanted| wanted == name);
    let known = |name: &String| found.iter().flatten().any(|imported| imported.server.name == *name);
    if let Some(missing) = command.names.iter().find(|name| !known(name)) {
        return Err(Failure::new("not_found", format_args!("there is no server `{missing}` in {}", file.display())));
    }
    let mut taken: Vec<Taken> = Vec::new();
    for imported in found {
        match imported {
            Ok(imported) if is_named(&imported.server.name) => {
                let written = imported.server.write(&root);
                taken.push(Taken { name: imported.server.name, written, notes: imported.notes });
            }
            Err(why) if command.names.is_empty() => taken.push(Taken { name: String::new(), written: Err(why), notes: Vec::new() }),
            Ok(_) | Err(_) => {}
        }
    }
    show(&taken, global);
    Ok(if taken.iter().any(|taken| taken.written.is_err()) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What became of one server.
struct Taken {
    name: String,
    /// The file, or why there is none.
    written: Result<String, String>,
    notes: Vec<String>,
}

fn show(taken: &[Taken], global: &Global) {
    if global.json {
        let list = taken.iter().map(|Taken { name, written, notes }| {
            json!({"name": name, "file": written.as_ref().ok(), "error": written.as_ref().err(), "notes": notes})
        });
        return terminal::json(json!({"servers": list.collect::<Vec<Value>>()}));
    }
    for Taken { written, notes, .. } in taken {
        match written {
            Ok(path) => terminal::print(&format!("{} {path}", styled(GOOD, "written:"))),
            Err(why) => terminal::print(&format!("{} {}", styled(CAREFUL, "left out:"), printable::escape_line(why))),
        }
        for note in notes {
            terminal::print(&format!("  {}", printable::escape_line(note)));
        }
    }
    terminal::note(&styled(FAINT, "next: look at what would run with `helve trust`, then at the tools with `helve mcp approve`"));
}

/// The only file of another client that is there.
fn only_place(root: &Path) -> Result<PathBuf, Failure> {
    let home = helve::internal::environment::var_os("HOME").map(PathBuf::from);
    let own = PLACES.iter().map(|place| root.join(place));
    let of_home = home.iter().flat_map(|home| HOME_PLACES.iter().map(move |place| home.join(place)));
    let found: Vec<PathBuf> = own.chain(of_home).filter(|path| path.is_file()).collect();
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            Err(Failure::new("not_found", "no file of Claude Desktop, Cursor or VS Code was found").hint("name it: helve mcp import FILE"))
        }
        several => {
            let list: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::usage("there are several files with servers").hint(format!("name one: {}", list.join(", "))))
        }
    }
}
