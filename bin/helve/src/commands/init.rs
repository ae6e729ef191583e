//! `helve init`: a sample project that teaches.

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

/// The sample, as it stands in `examples/project`.
const SAMPLE: [(&str, &str); 7] = sample![
    "helve.yaml",
    "tools/builtin/word_count.yaml",
    "tools/builtin/word_count.py",
    "tools/native/current_weather.yaml",
    "tool_sets/everyday.yaml",
    "tool_sets/writing.yaml",
    "agents/assistant.yaml",
];

/// Writes the sample. Nothing that is there is overwritten.
pub fn run(folder: &Path, global: &Global) -> Result<ExitCode, Failure> {
    if let Some((file, _)) = SAMPLE.iter().find(|(file, _)| folder.join(file).exists()) {
        return Err(Failure::new("conflict", format_args!("{} is there already, and is not overwritten", folder.join(file).display()))
            .hint("choose an empty folder: helve init DIR"));
    }
    if let Some(link) = link_in(folder) {
        return Err(Failure::new("conflict", format_args!("{} is a symbolic link, and is not followed", link.display()))
            .hint("choose an empty folder: helve init DIR"));
    }
    for (count, (file, text)) in SAMPLE.into_iter().enumerate() {
        if let Err(failure) = write(&folder.join(file), text) {
            // A sample that is only half there would keep the next try from working.
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
    terminal::print(&format!("{} a sample project in {}", styled(GOOD, "Wrote"), folder.display()));
    for (file, _) in SAMPLE {
        terminal::print(&format!("  {file}"));
    }
    let place = if folder == Path::new(".") { String::new() } else { format!("-C {} ", folder.display()) };
    terminal::print("\nTry it:");
    for command in ["tools", "tools call word_count 'text=one two three'", "agents", "trust"] {
        terminal::print(&format!("  {}", styled(STRONG, &format!("helve {place}{command}"))));
    }
    Ok(ExitCode::SUCCESS)
}

/// A link in the folder that would lead a part of the sample elsewhere.
fn link_in(folder: &Path) -> Option<PathBuf> {
    let parts = SAMPLE.iter().flat_map(|(file, _)| Path::new(file).ancestors()).filter(|part| !part.as_os_str().is_empty());
    parts.map(|part| folder.join(part)).find(|path| path.is_symlink())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let attempt = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        // Not `write`: a file that appeared meanwhile stays.
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        std::io::Write::write_all(&mut file, text.as_bytes())
    };
    attempt().map_err(|error| Failure::new("failed", format_args!("{} cannot be written: {error}", path.display())))
}
