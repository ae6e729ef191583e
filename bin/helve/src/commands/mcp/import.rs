//! `helve mcp import`: imports servers from the files of other clients.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use helve::internal::printable;
use helve::mcp::import;
use serde_json::{Value, json};

use crate::cli::Global;
use crate::cli::mcp::Import;
use crate::failure::Failure;
use crate::terminal::{self, CAREFUL, GOOD, styled};
use crate::workspace::Workspace;

/// Files of other clients in the project.
const PROJECT_FILES: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
/// Files of other clients in the home folder.
const HOME_FILES: [&str; 4] = [
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".config/Code/User/mcp.json",
];

/// Writes a file for each server. Never overwrites a file.
pub fn run(command: &Import, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let root = workspace.report().root.clone();
    let file = match &command.file {
        Some(file) => file.clone(),
        None => find_file(&root)?,
    };
    let text = std::fs::read_to_string(&file)
        .map_err(|error| Failure::new("not_found", format_args!("cannot read {}: {error}", file.display())))?;
    let found = import(&text).map_err(|why| Failure::new("bad_request", format_args!("{}: {why}", file.display())))?;
    let is_named = |name: &str| command.names.is_empty() || command.names.iter().any(|wanted| wanted == name);
    let known = |name: &String| found.iter().flatten().any(|imported| imported.server.name == *name);
    if let Some(missing) = command.names.iter().find(|name| !known(name)) {
        return Err(Failure::new("not_found", format_args!("there is no MCP server `{missing}` in {}", file.display())));
    }
    let mut results: Vec<ImportResult> = Vec::new();
    for imported in found {
        match imported {
            Ok(imported) if is_named(&imported.server.name) => {
                let written = imported.server.write(&root);
                results.push(ImportResult { name: imported.server.name, written, notes: imported.notes });
            }
            Err(why) if command.names.is_empty() => {
                results.push(ImportResult { name: String::new(), written: Err(why), notes: Vec::new() });
            }
            Ok(_) | Err(_) => {}
        }
    }
    show(&results, global);
    Ok(if results.iter().any(|result| result.written.is_err()) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The result of importing one server.
struct ImportResult {
    name: String,
    /// The path of the file that was written, or an error message.
    written: Result<String, String>,
    notes: Vec<String>,
}

fn show(results: &[ImportResult], global: &Global) {
    if global.json {
        let list = results.iter().map(|ImportResult { name, written, notes }| {
            json!({"name": name, "file": written.as_ref().ok(), "error": written.as_ref().err(), "notes": notes})
        });
        return terminal::json(json!({"servers": list.collect::<Vec<Value>>()}));
    }
    for ImportResult { written, notes, .. } in results {
        match written {
            Ok(path) => terminal::print(&format!("{} {path}", styled(GOOD, "written:"))),
            Err(why) => terminal::print(&format!("{} {}", styled(CAREFUL, "skipped:"), printable::escape_line(why))),
        }
        for note in notes {
            terminal::print(&format!("  {}", printable::escape_line(note)));
        }
    }
    terminal::note_faintly("next: review what would run with `helve trust`, then the tools with `helve mcp approve`");
}

/// Finds the file of another client.
fn find_file(root: &Path) -> Result<PathBuf, Failure> {
    let home = helve::internal::environment::var_os("HOME").map(PathBuf::from);
    let own = PROJECT_FILES.iter().map(|place| root.join(place));
    let of_home = home.iter().flat_map(|home| HOME_FILES.iter().map(move |place| home.join(place)));
    let found: Vec<PathBuf> = own.chain(of_home).filter(|path| path.is_file()).collect();
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::new("not_found", "found no file with MCP servers of Claude Desktop, Cursor or VS Code")
            .hint("name the file: helve mcp import FILE")),
        several => {
            let list: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::usage("found several files with MCP servers")
                .hint(format!("name one with `helve mcp import FILE`: {}", list.join(", "))))
        }
    }
}
