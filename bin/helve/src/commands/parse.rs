//! `helve parse`: what a model's text says, item by item.

use std::fs;
use std::io::{self, BufRead, BufWriter, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use helve::dialect::{Dialect, Item, Items, Mode, Scanner, ToolTable};
use helve::{printable, suggest};
use serde_json::{Value, json};

use crate::cli::{Global, Parse, ParseMode};
use crate::failure::Failure;
use crate::terminal::{self, FAINT, STRONG, styled};

/// Reads stdin, or lists the formats.
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
        terminal::note("reading the model's text from here; end it with Ctrl-D");
    }
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input).map_err(|error| Failure::new("failed", format_args!("cannot read stdin: {error}")))?;
    let mode = match parse.mode {
        ParseMode::Lenient => Mode::Lenient,
        ParseMode::Strict => Mode::Strict,
    };
    let items = scan(Scanner::new(dialect, mode, Arc::new(tools)), &pieces(&input, parse.chunk));
    write_line(&mut io::stdout().lock(), &json!({"items": items}))?;
    Ok(ExitCode::SUCCESS)
}

/// One JSON object a line in, one out.
fn batch() -> Result<ExitCode, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut failed = false;
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| Failure::new("failed", format_args!("cannot read stdin: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let (id, answer) = match serde_json::from_str::<Value>(&line) {
            Ok(request) => (request.get("id").cloned().unwrap_or(Value::Null), answer(&request)),
            Err(error) => (Value::Null, Err(format!("not JSON: {error}"))),
        };
        // One bad line does not take the answers of the others.
        let document = match answer {
            Ok(items) => json!({"id": id, "items": items}),
            Err(message) => {
                failed = true;
                terminal::note(&format!("line {}: {}", number + 1, printable::escape_line(&message)));
                json!({"id": id, "error": {"kind": "bad_request", "message": message, "details": {"line": number + 1}}})
            }
        };
        write_line(&mut out, &document)?;
    }
    let _ = out.flush();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn answer(request: &Value) -> Result<Vec<Item>, String> {
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
    Ok(scan(Scanner::new(dialect, mode, Arc::new(tools)), &pieces(text.as_bytes(), chunk)))
}

fn scan(mut scanner: Scanner, pieces: &[&[u8]]) -> Vec<Item> {
    let mut items = Items::default();
    for piece in pieces {
        scanner.push(piece, &mut |event| items.push(event));
    }
    scanner.finish(&mut |event| items.push(event));
    items.into_vec()
}

/// Cuts the input: 0 leaves it whole, N gives N characters at a time, -N cuts at random with seed N.
fn pieces(input: &[u8], chunk: i64) -> Vec<&[u8]> {
    if chunk == 0 {
        return vec![input];
    }
    let starts: Vec<usize> = (0..input.len()).filter(|at| input[*at] & 0xc0 != 0x80).collect();
    let mut seed = chunk.unsigned_abs();
    let mut pieces = Vec::new();
    let (mut from, mut count) = (0, 0);
    let mut wanted = chunk.unsigned_abs();
    for start in starts {
        if count == wanted {
            pieces.push(&input[from..start]);
            (from, count) = (start, 0);
        }
        if chunk < 0 && count == 0 {
            // A small generator is enough to cut in odd places, and gives the same places again.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            wanted = 1 + (seed >> 33) % 12;
        }
        count += 1;
    }
    pieces.push(&input[from..]);
    pieces
}

fn read_tools(file: &Path) -> Result<ToolTable, Failure> {
    let place = file.display();
    let text = fs::read_to_string(file).map_err(|error| Failure::new("not_found", format_args!("cannot read {place}: {error}")))?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| Failure::new("bad_request", format_args!("{place} is not JSON: {error}")))?;
    ToolTable::from_json(&value)
        .map_err(|error| Failure::new("bad_request", format_args!("{place}: {error}")).hint("give [{\"name\": …, \"parameters\": {…}}, …]"))
}

fn find(name: &str) -> Result<Dialect, Failure> {
    Dialect::named(name).ok_or_else(|| {
        let hint = suggest::nearest(name, Dialect::names()).map_or_else(
            || "helve parse --formats lists them".to_owned(),
            |near| format!("did you mean `{near}`? helve parse --formats lists all"),
        );
        Failure::usage(format_args!("there is no dialect `{name}`")).hint(hint)
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

/// Writes one document. Its values repeat what was read, to the byte.
fn write_line(out: &mut impl Write, document: &Value) -> Result<(), Failure> {
    match writeln!(out, "{}", printable::json(document)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new("failed", format_args!("cannot write: {error}"))),
        _ => Ok(()),
    }
}
