//! `helve init`: creates a sample project.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::cli::Global;
use crate::failure::Failure;
use crate::terminal::{self, GOOD, STRONG, styled};

macro_rules! sample {
    ($($file:literal),* $(,)?) => {
        [$(($file, include_str!(concat!("../../../../examples/project/", $file)))),*]
    };
}

/// The files of `examples/project`.
const SAMPLE: [(&str, &str); 7] = sample![
    "helve.yaml",
    "tools/builtin/word_count.yaml",
    "tools/builtin/word_count.py",
    "tools/native/current_weather.yaml",
    "tool_sets/everyday.yaml",
    "tool_sets/writing.yaml",
    "agents/assistant.yaml",
];

/// Writes the sample project. Never overwrites a file.
pub fn run(folder: &Path, global: &Global) -> Result<ExitCode, Failure> {
    if let Some((file, _)) = SAMPLE.iter().find(|(file, _)| folder.join(file).exists()) {
        return Err(Failure::new("conflict", format_args!("{} already exists", folder.join(file).display()))
            .hint("choose an empty folder: helve init DIR"));
    }
    if let Some(link) = link_in(folder) {
        return Err(Failure::new("conflict", format_args!("{} is a symbolic link, which Helve does not follow here", link.display()))
            .hint("choose an empty folder: helve init DIR"));
    }
    for (count, (file, text)) in SAMPLE.into_iter().enumerate() {
        if let Err(failure) = write(&folder.join(file), text) {
            // An incomplete sample would make the next attempt fail.
            for (written, _) in &SAMPLE[..count] {
                let _ = fs::remove_file(folder.join(written));
            }
            return Err(failure);
        }
    }
    if global.json {
        let files: Vec<_> = SAMPLE.iter().map(|(file, _)| file).collect();
        terminal::json(json!({"folder": folder.display().to_string(), "files": files}));
        return Ok(ExitCode::SUCCESS);
    }
    terminal::print(&format!("{} a sample project in {}", styled(GOOD, "Created"), folder.display()));
    for (file, _) in SAMPLE {
        terminal::print(&format!("  {file}"));
    }
    let option = if folder == Path::new(".") { String::new() } else { format!("-C {} ", folder.display()) };
    terminal::print("\nTry it:");
    for command in ["tools", "tools call word_count 'text=one two three'", "agents", "trust"] {
        terminal::print(&format!("  {}", styled(STRONG, &format!("helve {option}{command}"))));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a symbolic link in the folder that would redirect a file of the sample.
fn link_in(folder: &Path) -> Option<PathBuf> {
    let parts = SAMPLE.iter().flat_map(|(file, _)| Path::new(file).ancestors()).filter(|part| !part.as_os_str().is_empty());
    parts.map(|part| folder.join(part)).find(|path| path.is_symlink())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let attempt = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        // `create_new`: a file that was created meanwhile is not overwritten.
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        std::io::Write::write_all(&mut file, text.as_bytes())
    };
    attempt().map_err(|error| Failure::new("failed", format_args!("cannot write {}: {error}", path.display())))
}
