//! CPU time of published tool-call parsers on fixed inputs. Prints Markdown.

mod inputs;
mod peers;

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ProcessTime;
use helve_dialect::Mode;
use peers::{Collect, Count, Deadline, Form, Peer, Sink};
use serde::de::IgnoredAny;
use serde_json::Value;

const LIMIT: u64 = 60;

/// Least CPU time of one run, of `tries` tries that take 30 ms or more each.
fn least(tries: usize, mut run: impl FnMut()) -> Duration {
    run();
    let mut times = 1u32;
    loop {
        let start = ProcessTime::now();
        (0..times).for_each(|_| run());
        if start.elapsed() > Duration::from_millis(30) {
            break;
        }
        times *= 2;
    }
    (0..tries)
        .map(|_| {
            let start = ProcessTime::now();
            (0..times).for_each(|_| run());
            start.elapsed() / times
        })
        .min()
        .unwrap()
}

enum Took {
    Least(Duration),
    /// Gave up with this part of the deltas read, after this CPU time.
    GaveUp(f64, Duration),
}

fn streamed(peer: &mut dyn Peer, form: Form, deltas: &[&str]) -> Took {
    let mut best = Duration::MAX;
    let mut total = Duration::ZERO;
    // At least one try; up to nine while they are cheap.
    for _ in 0..9 {
        let run = peer.stream(form, deltas);
        let mut deadline = Deadline::after(LIMIT);
        let mut count = Count::default();
        let start = ProcessTime::now();
        run(&mut count, &mut deadline);
        let took = start.elapsed();
        black_box(count.0);
        if deadline.over {
            return Took::GaveUp(deadline.seen() as f64 / deltas.len() as f64, took);
        }
        best = best.min(took);
        total += took;
        if total > Duration::from_secs(8) {
            break;
        }
    }
    Took::Least(best)
}

fn number(value: f64) -> String {
    let digits = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 4,
    };
    let plain = format!("{value:.digits$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    out + rest
}

/// Whether text is lost, on small awkward messages in the hermes format.
fn awkward(peers: &mut [Box<dyn Peer>]) {
    let one = inputs::SMALL;
    let probes = [
        ("text before, between and after two calls", format!("Before.\n{one}\nBetween.\n{one}\nAfter.")),
        ("no newline inside the marks", one.replace('\n', "")),
        ("`</tool_call>` inside a string", one.replace("Paris", "a </tool_call> b")),
        ("the mark as a word in prose", "Write <tool_call> to call. Nothing more.".to_owned()),
        ("cut off within the arguments", format!("Before. {}", &one[..one.len() - 30])),
        ("trailing comma in the arguments", one.replace("3}}", "3,}}")),
        ("a tool that is not declared", one.replace("get_weather", "other_tool")),
    ];
    let names: Vec<&str> = peers.iter().filter(|peer| peer.reads(Form::Hermes) && !peer.small_only()).map(|peer| peer.name()).collect();
    println!("\nWhat comes out (whole / in 4-character deltas): calls, and the text (helve-dialect's event for a malformed call is shown as its raw text):\n");
    println!("| message | {} |\n| --- |{}", names.join(" | "), " --- |".repeat(names.len()));
    for (label, text) in &probes {
        let deltas: Vec<&str> = (0..text.len()).step_by(4).map(|at| &text[at..text.len().min(at + 4)]).collect();
        let mut cells = Vec::new();
        for peer in peers.iter_mut().filter(|peer| peer.reads(Form::Hermes) && !peer.small_only()) {
            let (mut whole, mut stream) = (Collect::default(), Collect::default());
            peer.whole(Form::Hermes, text, &mut whole);
            peer.stream(Form::Hermes, &deltas)(&mut stream, &mut Deadline::after(LIMIT));
            let show = |got: &Collect| {
                let calls: Vec<&str> = got.calls.iter().map(|call| if call.1.is_empty() { "-" } else { call.1.as_str() }).collect();
                let sound = calls.iter().filter(|arguments| serde_json::from_str::<Value>(arguments).is_ok()).count();
                let text = got.text.replace('\n', "⏎");
                let text = if label.starts_with("cut") && sound > 0 { format!("{text}` with `{}", calls.join(" ")) } else { text };
                format!("{}{} `{}`", sound, if sound < calls.len() { format!(" + {} broken", calls.len() - sound) } else { String::new() }, text)
            };
            let (whole, stream) = (show(&whole), show(&stream));
            cells.push(if whole == stream { whole } else { format!("{whole} / {stream}") });
        }
        println!("| {label} | {} |", cells.join(" | "));
    }
}

enum What {
    Whole,
    Stream,
}
struct Case {
    label: &'static str,
    what: What,
    text: [String; 2],
    /// The JSON alone, for the baselines.
    json: String,
    calls: Vec<(String, Value)>,
    /// The text that is no call, except for white space at its ends.
    prose: String,
    per_call: bool,
}

/// What is wrong with the result, if anything.
fn check(case: &Case, got: &Collect) -> Option<String> {
    let mut wrong = Vec::new();
    if got.calls.len() != case.calls.len() {
        wrong.push(format!("{} calls instead of {}", got.calls.len(), case.calls.len()));
    }
    for (have, want) in got.calls.iter().zip(&case.calls) {
        if have.0 != want.0 {
            wrong.push(format!("name `{}`", have.0));
        }
        match serde_json::from_str::<Value>(&have.1) {
            Err(error) => wrong.push(format!("arguments are no JSON ({error})")),
            Ok(value) if value != want.1 => {
                let content = |value: &Value| value["content"].as_str().unwrap_or_default().to_owned();
                let (have, want) = (content(&value), content(&want.1));
                wrong.push(if have != want && have == want.trim() {
                    format!("white space at the ends of the string lost ({} of {} bytes)", have.len(), want.len())
                } else {
                    "other arguments".to_owned()
                });
            }
            Ok(_) => {}
        }
    }
    if got.text.trim() != case.prose.trim() {
        wrong.push(format!("{} bytes of text instead of {}", got.text.trim().len(), case.prose.trim().len()));
    } else if got.text.len() != case.prose.len() {
        wrong.push(format!("white space of the text changed ({} bytes, {} expected)", got.text.len(), case.prose.len()));
    }
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

fn main() {
    let tools = inputs::tools();
    let mut cases = Vec::new();
    let (small_name, small) = inputs::small();
    for (label, code) in [("1 prose, 1 MB, whole, MB/s", false), ("1 prose with code between (`<`, `{`), 1 MB, whole, MB/s", true)] {
        let text = inputs::prose(1_000_000, code);
        cases.push(Case { label, what: What::Whole, text: [text.clone(), text.clone()], json: String::new(), calls: vec![], prose: text, per_call: false });
    }
    let text = inputs::prose(1_000_000, false);
    cases.push(Case { label: "1 prose, 1 MB, in 4-character deltas, MB/s", what: What::Stream, text: [text.clone(), text.clone()], json: String::new(), calls: vec![], prose: text, per_call: false });
    let mut call = |label, what, name: &str, arguments: Value, per_call| {
        cases.push(Case {
            label,
            what,
            text: [
                if per_call { inputs::SMALL.to_owned() } else { inputs::hermes(name, &arguments) },
                inputs::coder(name, &arguments),
            ],
            json: inputs::body(name, &arguments),
            calls: vec![(name.to_owned(), arguments)],
            prose: String::new(),
            per_call,
        });
    };
    let (string, values) = (inputs::long_string as fn(usize) -> Value, inputs::many_values as fn(usize) -> Value);
    call("2 call, 100 KB, one string, whole, MB/s", What::Whole, "write_file", string(100_000), false);
    call("2 call, 100 KB, many values, whole, MB/s", What::Whole, "write_file", values(100_000), false);
    call("3 call, 10 KB, one string, 4-character deltas, MB/s", What::Stream, "write_file", string(10_000), false);
    call("3 call, 100 KB, one string, 4-character deltas, MB/s", What::Stream, "write_file", string(100_000), false);
    call("3 call, 200 KB, one string, 4-character deltas, MB/s", What::Stream, "write_file", string(200_000), false);
    call("3 call, 100 KB, many values, 4-character deltas, MB/s", What::Stream, "write_file", values(100_000), false);
    call("3 call, 200 KB, many values, 4-character deltas, MB/s", What::Stream, "write_file", values(200_000), false);
    call("4 small call, whole, calls/s", What::Whole, &small_name, small.clone(), true);
    call("4 small call, 4-character deltas, calls/s", What::Stream, &small_name, small, true);

    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(peers::Helve::new("helve-dialect", ["hermes", "qwen3_coder"], Mode::Lenient, &tools)),
        Box::new(peers::Helve::new("helve-dialect `auto`", ["auto", "auto"], Mode::Lenient, &tools)),
    ];
    #[cfg(feature = "smg")]
    peers.push(Box::new(peers::Smg::new(&tools, false)));
    #[cfg(feature = "smg")]
    peers.push(Box::new(peers::Smg::new(&tools, true)));
    #[cfg(feature = "dynamo")]
    peers.push(Box::new(peers::Dynamo::new(&tools)));
    #[cfg(feature = "dynamo2")]
    peers.push(Box::new(peers::Dynamo2::new(&tools)));
    #[cfg(feature = "adk")]
    peers.push(Box::new(peers::Adk::new(&tools)));

    let mut notes: Vec<String> = Vec::new();
    if std::env::args().any(|argument| argument == "--awkward") {
        return awkward(&mut peers);
    }
    for form in [Form::Hermes, Form::Coder] {
        let place = usize::from(form == Form::Coder);
        let mut names: Vec<&str> = peers.iter().filter(|peer| peer.reads(form)).map(|peer| peer.name()).collect();
        names.extend(["serde_json `Value`", "serde_json `IgnoredAny`", "memchr2 `<` `{`"].iter().filter(|_| form == Form::Hermes));
        println!("\n{}:\n", if place == 0 { "`<tool_call>{json}</tool_call>`" } else { "`<tool_call><function=…><parameter=…>`" });
        println!("| case | {} |", names.join(" | "));
        println!("| --- |{}", " ---: |".repeat(names.len()));
        for case in &cases {
            let text = case.text[place].as_str();
            let deltas: Vec<&str> = (0..text.len()).step_by(4).map(|at| &text[at..text.len().min(at + 4)]).collect();
            let rate = |bytes: usize, time: Duration| {
                number(if case.per_call { 1.0 / time.as_secs_f64() } else { bytes as f64 / 1e6 / time.as_secs_f64() })
            };
            let mut cells = Vec::new();
            for peer in peers.iter_mut().filter(|peer| peer.reads(form)) {
                if peer.small_only() && !case.per_call {
                    cells.push("—".to_owned());
                    continue;
                }
                let mut got = Collect::default();
                let mut sure = true;
                let mut cell = match case.what {
                    What::Whole => {
                        peer.whole(form, text, &mut got);
                        rate(text.len(), least(9, || {
                            let mut count = Count::default();
                            peer.whole(form, black_box(text), &mut count as &mut dyn Sink);
                            black_box(count.0);
                        }))
                    }
                    What::Stream => match streamed(peer.as_mut(), form, &deltas) {
                        Took::Least(time) if time < Duration::from_secs(LIMIT) => {
                            if time < Duration::from_secs(30) {
                                peer.stream(form, &deltas)(&mut got, &mut Deadline::after(10 * LIMIT));
                            } else {
                                sure = false;
                            }
                            // A short call is done again and again for a steadier number.
                            let time = if case.per_call {
                                least(9, || {
                                    let mut count = Count::default();
                                    peer.stream(form, black_box(&deltas))(&mut count, &mut Deadline::after(LIMIT));
                                    black_box(count.0);
                                })
                            } else {
                                time
                            };
                            rate(text.len(), time)
                        }
                        Took::Least(time) => rate(text.len(), time),
                        Took::GaveUp(part, time) => {
                            sure = false;
                            format!("gave up after {:.0} s at {:.0} %", time.as_secs_f64(), part * 100.0)
                        }
                    },
                };
                if sure && let Some(wrong) = check(case, &got) {
                    cell.push_str(" ✗");
                    notes.push(format!("{} · {form:?} · {}: {wrong}", peer.name(), case.label));
                } else if sure && matches!(case.what, What::Stream) && got.pieces > 0 && case.label.contains("100 KB") {
                    notes.push(format!("{} · {form:?} · {}: right; arguments came in {} pieces", peer.name(), case.label, got.pieces));
                }
                cells.push(cell);
            }
            if form == Form::Hermes {
                if case.json.is_empty() || matches!(case.what, What::Stream) {
                    cells.extend(["—".to_owned(), "—".to_owned()]);
                } else {
                    cells.push(rate(case.json.len(), least(9, || {
                        black_box(serde_json::from_str::<Value>(black_box(&case.json)).unwrap());
                    })));
                    cells.push(rate(case.json.len(), least(9, || {
                        black_box(serde_json::from_str::<IgnoredAny>(black_box(&case.json)).unwrap());
                    })));
                }
                cells.push(if case.json.is_empty() && matches!(case.what, What::Whole) {
                    rate(text.len(), least(9, || {
                        let mut at = 0;
                        let mut hits = 0usize;
                        let bytes = black_box(text).as_bytes();
                        while let Some(next) = memchr::memchr2(b'<', b'{', &bytes[at..]) {
                            at += next + 1;
                            hits += 1;
                        }
                        black_box(hits);
                    }))
                } else {
                    "—".to_owned()
                });
            }
            println!("| {} | {} |", case.label, cells.join(" | "));
        }
    }
    awkward(&mut peers);
    println!("\nNotes (✗: result not as expected):\n");
    for note in notes {
        println!("- {note}");
    }
}
