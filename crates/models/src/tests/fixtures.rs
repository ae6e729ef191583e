//! Responses as providers send them, read whole and in chunks of every size.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use helve_core::{Deltas, ModelDelta, ModelError};
use proptest::prelude::*;

use super::{snapshot, wires};
use crate::Wire;
use crate::wire::{read_event, read_whole};
use helve_fetch::Events;

/// The responses of a wire: names and bytes, in order.
fn fixtures(wire: &dyn Wire) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is"))
        .join("tests/fixtures")
        .join(wire.name());
    let entries = fs::read_dir(folder).expect("a folder for each wire").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> = entries
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("a file"))
        })
        .collect();
    found.sort();
    found
}

/// Reads a response in chunks of a size, as the client does.
pub(super) fn streamed(wire: &dyn Wire, bytes: &[u8], size: usize) -> (Deltas, Result<(), ModelError>) {
    let (mut events, mut reader, mut deltas) = (Events::default(), wire.events(), Deltas::default());
    let mut sink = |name: &str, data: &[u8]| read_event(&mut *reader, name, data, &mut deltas);
    let mut read = bytes.chunks(size).try_for_each(|piece| events.feed(piece, &mut sink));
    read = read.and_then(|()| events.finish(&mut sink));
    let read = read.map_err(crate::client::of_events).and_then(|()| reader.finish(&mut deltas));
    (deltas, read)
}

pub(super) fn read(wire: &dyn Wire, bytes: &[u8], size: usize) -> (Deltas, Result<(), ModelError>) {
    if bytes.starts_with(b"{") {
        let mut deltas = Deltas::default();
        let read = read_whole(wire, bytes, &mut deltas);
        return (deltas, read);
    }
    streamed(wire, bytes, size)
}

/// What was read: consecutive deltas of one kind are put together.
fn summary(deltas: &Deltas, read: Result<(), ModelError>) -> String {
    let (mut text, mut kind, mut usage) = (String::new(), String::new(), None);
    let mut add = |now: String, piece: &str| {
        if kind != now || now.is_empty() {
            write!(text, "\n  {now}").expect("memory");
        }
        kind = now;
        text.push_str(&piece.replace('\n', "\\n"));
    };
    for delta in deltas.iter() {
        match delta {
            ModelDelta::Text(piece) => add("text: ".into(), piece),
            ModelDelta::Reasoning(piece) => add("reasoning: ".into(), piece),
            ModelDelta::Call { index, id, name, arguments } => {
                if id.is_some() || name.is_some() {
                    add(String::new(), &format!("call {index:?} id={id:?} name={name:?}"));
                }
                if !arguments.is_empty() {
                    add(format!("arguments {index:?}: "), arguments);
                }
            }
            ModelDelta::ProviderPart(value) => add(String::new(), &format!("kept: {value}")),
            ModelDelta::Usage(now) => usage = Some(now),
            ModelDelta::End(reason) => add(String::new(), &format!("end: {reason:?}")),
            other => panic!("{other:?} is new here"),
        }
    }
    if let Err(error) = read {
        add(String::new(), &format!("error {}: {error}", error.kind()));
    }
    if let Some(usage) = usage {
        let cost = usage.cost.map(|cost| format!(", cost {cost}")).unwrap_or_default();
        add(String::new(), &format!("usage: in {}, cached {}, out {}{cost}", usage.input_tokens, usage.cached_tokens, usage.output_tokens));
    }
    text
}

#[test]
fn responses_are_understood_in_any_pieces() {
    for wire in wires() {
        let mut summaries = String::new();
        for (name, bytes) in fixtures(&*wire) {
            let (deltas, ended) = read(&*wire, &bytes, usize::MAX);
            for size in [1, 7, 4096] {
                let (pieces, piecewise) = read(&*wire, &bytes, size);
                assert!(pieces.iter().eq(deltas.iter()), "{}/{name} in pieces of {size}", wire.name());
                assert_eq!(piecewise, ended, "{}/{name} in pieces of {size}", wire.name());
            }
            writeln!(summaries, "{name}{}\n", summary(&deltas, ended)).expect("memory");
        }
        snapshot(&format!("responses_{}", wire.name()), &summaries);
    }
}

#[test]
fn a_response_that_is_cut_anywhere_never_ends_well_before_its_end() {
    for wire in wires() {
        let (_, whole) = fixtures(&*wire).into_iter().find(|(name, _)| name == "text").expect("a plain response");
        let last_word = whole.windows(4).rposition(|window| window == b"Gott").expect("its last word");
        for end in 0..last_word {
            let (deltas, read) = streamed(&*wire, &whole[..end], usize::MAX);
            let ended = deltas.iter().any(|delta| matches!(delta, ModelDelta::End(_)));
            assert!(read.is_err() && !ended, "{} cut at {end}", wire.name());
        }
    }
}

proptest! {
    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1usize..64) {
        for wire in wires() {
            let _ = wire.from_wire(&bytes, &mut Deltas::default());
            let mut event = b"data: ".to_vec();
            event.extend_from_slice(&bytes);
            let _ = streamed(&*wire, &event, size);
        }
    }

    #[test]
    fn responses_with_other_things_in_them_never_panic(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        until in any::<prop::sample::Index>(),
        other in prop::sample::select(vec!["null", "-1", "1e999", "\"\"", "[]", "{}", "true", "[[1]]", "18446744073709551616", "", "\\ud800"]),
    ) {
        for wire in wires() {
            let all = fixtures(&*wire);
            let (_, bytes) = which.get(&all);
            // Replaces a value, from a colon to the next comma.
            let colons: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(place, _)| place + 1).collect();
            let start = *at.get(&colons);
            let stop = start + bytes[start..].iter().position(|byte| matches!(byte, b',' | b'}' | b'\n')).unwrap_or(until.index(bytes.len() - start));
            let changed = [&bytes[..start], other.as_bytes(), &bytes[stop..]].concat();
            let _ = read(&*wire, &changed, 4096);
        }
    }
}
