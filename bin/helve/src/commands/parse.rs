//! `helve parse`: splits a model's text into text, reasoning, calls and malformed calls.

use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, IsTerminal, Read, Write};
use std::iter;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use helve::dialect::{Dialect, Item, Items, Mode, Scanner, ToolTable};
use helve::internal::printable;
use serde_json::{Value, json};

use crate::cli::{Global, Parse, ParseMode};
use crate::failure::Failure;
use crate::terminal::{self, FAINT, STRONG, styled};

/// Maximum size of a text, and of a line with `--batch`, in bytes: far more than a model's message.
const MAX_TEXT: u64 = 64 << 20;
/// Maximum size of the file with tools, in bytes.
const MAX_TOOLS: u64 = 16 << 20;

/// Parses stdin, or lists the formats.
pub fn run(parse: &Parse, global: &Global) -> Result<ExitCode, Failure> {
    if parse.formats {
        list_formats(global);
        return Ok(ExitCode::SUCCESS);
    }
    if parse.batch {
        return batch();
    }
    let tools = parse.tools.as_deref().map_or_else(|| Ok(ToolTable::unknown()), read_tools)?;
    let dialect = find(&parse.dialect)?;
    if io::stdin().is_terminal() {
        terminal::note("Reading from the terminal; Ctrl-D ends the text.");
    }
    let mut input = Vec::new();
    io::stdin().lock().take(MAX_TEXT + 1).read_to_end(&mut input).map_err(|error| unreadable(&error))?;
    check_size(&input, "the text")?;
    let mode = match parse.mode {
        ParseMode::Lenient => Mode::Lenient,
        ParseMode::Strict => Mode::Strict,
    };
    let items = scan(Scanner::new(dialect, mode, Arc::new(tools)), pieces(&input, parse.chunk));
    // The items contain the text.
    drop(input);
    let mut out = BufWriter::new(io::stdout().lock());
    written(write_items(&mut out, "", &items).and_then(|()| out.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads one JSON object per line, and writes one per line.
fn batch() -> Result<ExitCode, Failure> {
    let (mut input, mut out) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let (mut failed, mut number) = (false, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(MAX_TEXT + 1).read_until(b'\n', &mut line).map_err(|error| unreadable(&error))? == 0 {
            break;
        }
        number += 1;
        check_size(&line, &format!("line {number}"))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (id, result) = match serde_json::from_slice::<Value>(&line) {
            Ok(request) => (request.get("id").cloned().unwrap_or(Value::Null), parse(&request)),
            Err(error) => (Value::Null, Err(format!("not valid JSON: {error}"))),
        };
        // An invalid line does not stop the others.
        match result {
            Ok(items) => written(write_items(&mut out, &format!("\"id\":{id},"), &items))?,
            Err(message) => {
                failed = true;
                terminal::note(&format!("line {number}: {}", printable::escape_line(&message)));
                let error = json!({"kind": "bad_request", "message": message, "details": {"line": number}});
                written(writeln!(out, "{}", json!({"id": id, "error": error})))?;
            }
        }
    }
    written(out.flush())?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn parse(request: &Value) -> Result<Vec<Item>, String> {
    let text = request.get("text").and_then(Value::as_str).ok_or("`text` is missing")?;
    let name = request.get("dialect").and_then(Value::as_str).unwrap_or("auto");
    let dialect = Dialect::named(name).ok_or_else(|| format!("there is no dialect `{name}`"))?;
    let mode = match request.get("mode").and_then(Value::as_str).unwrap_or("lenient") {
        "lenient" => Mode::Lenient,
        "strict" => Mode::Strict,
        other => return Err(format!("`mode` is lenient or strict, not `{other}`")),
    };
    let tools = match request.get("tools") {
        None | Some(Value::Null) => ToolTable::unknown(),
        Some(tools) => ToolTable::from_json(tools)?,
    };
    let chunk = request.get("chunk").and_then(Value::as_i64).unwrap_or(0);
    Ok(scan(Scanner::new(dialect, mode, Arc::new(tools)), pieces(text.as_bytes(), chunk)))
}

fn scan<'a>(mut scanner: Scanner, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Item> {
    let mut items = Items::default();
    for piece in pieces {
        scanner.push(piece, &mut |event| items.push(event));
    }
    scanner.finish(&mut |event| items.push(event));
    items.into_vec()
}

/// Splits the input into chunks. With `chunk` 0, there is one chunk; with N, each chunk has N characters; with -N, chunks have random
/// lengths with the seed N.
fn pieces(input: &[u8], chunk: i64) -> impl Iterator<Item = &[u8]> {
    let mut seed = chunk.unsigned_abs();
    let mut rest = input;
    iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let wanted = match chunk {
            0 => u64::MAX,
            1.. => chunk.unsigned_abs(),
            _ => {
                // A linear congruential generator: repeatable, and random enough to split in odd places.
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                1 + (seed >> 33) % 12
            }
        };
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let piece;
        (piece, rest) = rest.split_at(characters(rest, wanted));
        Some(piece)
    })
}

/// Returns the number of bytes of the first `count` characters, or of all characters if there are fewer.
fn characters(bytes: &[u8], count: usize) -> usize {
    if count >= bytes.len() {
        return bytes.len();
    }
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
    starts.map(|(at, _)| at).filter(|at| *at > 0).nth(count - 1).unwrap_or(bytes.len())
}

fn read_tools(file: &Path) -> Result<ToolTable, Failure> {
    let name = file.display();
    let bytes = read_ordinary(file).map_err(|error| Failure::new("not_found", format_args!("cannot read {name}: {error}")))?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| Failure::new("bad_request", format_args!("{name} is not valid JSON: {error}")))?;
    ToolTable::from_json(&value)
        .map_err(|error| Failure::new("bad_request", format_args!("{name}: {error}")).hint("write [{\"name\": …, \"parameters\": {…}}, …]"))
}

/// Reads a regular file up to the limit. A device or a pipe may be endless.
fn read_ordinary(file: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_TOOLS + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TOOLS {
        return Err(io::Error::other(format!("larger than {} MiB", MAX_TOOLS >> 20)));
    }
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::new("failed", format_args!("cannot read stdin: {error}"))
}

fn check_size(input: &[u8], what: &str) -> Result<(), Failure> {
    if input.len() as u64 > MAX_TEXT {
        return Err(Failure::new("bad_request", format_args!("{what} is longer than {} MiB", MAX_TEXT >> 20)));
    }
    Ok(())
}

fn find(name: &str) -> Result<Dialect, Failure> {
    Dialect::named(name).ok_or_else(|| {
        Failure::usage(format_args!("there is no dialect `{name}`")).suggest(name, Dialect::names(), "`helve parse --formats` lists all")
    })
}

fn list_formats(global: &Global) {
    let who = |name| Dialect::who(name).unwrap_or_default();
    if global.json {
        let formats: Vec<_> = Dialect::names().map(|name| json!({"name": name, "who": who(name)})).collect();
        terminal::json(json!({"formats": formats}));
        return;
    }
    for name in Dialect::names() {
        terminal::print(&format!("{} {}", styled(STRONG, &format!("{name:<20}")), styled(FAINT, who(name))));
    }
}

/// Writes the items without redaction, as an exact copy of the input, and without a second copy in memory.
fn write_items(out: &mut impl Write, before: &str, items: &[Item]) -> io::Result<()> {
    write!(out, "{{{before}\"items\":")?;
    printable::write_json(out, &items)?;
    writeln!(out, "}}")
}

/// Converts the result of a write to stdout. A closed pipe is not an error.
fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new("failed", format_args!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
