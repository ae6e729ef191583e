//! Reads what strace wrote: which bytes went where, what was synced, what was acknowledged, in their order.

use std::collections::HashMap;

/// Something that the watched process did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Write { file: String, offset: u64, bytes: Vec<u8> },
    Cut { file: String, length: u64 },
    Removed(String),
    Synced(String),
    Acknowledged(String),
}

/// All steps of a trace.
pub fn read(trace: &str) -> Vec<Step> {
    let mut begun: HashMap<&str, String> = HashMap::new();
    let mut steps = Vec::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.trim_start().split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            // What is written may be on the disk from here on; what is synced is so only at its end.
            if start.starts_with("fsync") || start.starts_with("fdatasync") {
                begun.insert(thread, start.trim_end().to_owned());
            } else {
                steps.extend(step(start));
            }
        } else if rest.starts_with("<... ") {
            if let (Some(start), true) = (begun.remove(thread), rest.ends_with("= 0")) {
                steps.extend(step(&start));
            }
        } else {
            steps.extend(step(rest));
        }
    }
    steps
}

fn step(call: &str) -> Option<Step> {
    let (name, arguments) = call.split_once('(')?;
    if name == "unlink" {
        let path = arguments.strip_prefix('"')?.split_once('"')?.0;
        return Some(Step::Removed(String::from_utf8_lossy(&unescaped(path)).into_owned()));
    }
    let (number, rest) = arguments.split_once('<')?;
    let (path, rest) = rest.split_once('>')?;
    let file = unescaped(path);
    let file = String::from_utf8_lossy(&file).into_owned();
    match name {
        "fsync" | "fdatasync" => Some(Step::Synced(file)),
        "ftruncate" => Some(Step::Cut { length: rest.trim_start_matches(", ").split([')', ' ']).next()?.parse().ok()?, file }),
        "write" | "pwrite64" => {
            let (_, rest) = rest.split_once('"')?;
            let (text, rest) = rest.split_once('"')?;
            let bytes = unescaped(text);
            if name == "write" {
                let said = String::from_utf8_lossy(&bytes).into_owned();
                return (number == "2")
                    .then(|| said.strip_prefix("ack ").map(|ack| Step::Acknowledged(ack.trim_end().to_owned())))
                    .flatten();
            }
            let mut numbers = rest.trim_start_matches(", ").split([',', ')', ' ']).filter(|text| !text.is_empty());
            let _count = numbers.next()?;
            Some(Step::Write { file, offset: numbers.next()?.parse().ok()?, bytes })
        }
        _ => None,
    }
}

/// Text in which every byte is `\xNN`, or any other text.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let hex = (*first == b'\\' && more.first() == Some(&b'x')).then(|| more.get(1..3)).flatten();
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()) {
            bytes.push(byte);
            rest = &more[3..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    bytes
}

#[test]
fn steps_are_read_in_their_order() {
    let trace = r#"7 pwrite64(5</d/r.db-wal>, "\x61\x62", 2, 32) = 2
7 fdatasync(5</d/r.db-wal> <unfinished ...>
8 write(2</dev/null>, "\x61\x63\x6b\x20\x31\x0a", 6) = 6
7 <... fdatasync resumed>) = 0
7 ftruncate(4</d/r.db>, 4096) = 0
8 write(1</dev/null>, "\x61\x63\x6b\x20\x32\x0a", 6) = 6"#;
    let wal = || "/d/r.db-wal".to_owned();
    let wanted = [
        Step::Write { file: wal(), offset: 32, bytes: b"ab".to_vec() },
        Step::Acknowledged("1".to_owned()),
        Step::Synced(wal()),
        Step::Cut { file: "/d/r.db".to_owned(), length: 4096 },
    ];
    assert_eq!(read(trace), wanted);
}
