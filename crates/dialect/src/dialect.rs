//! A dialect: the formats that a text may be in, with all their markers prepared for one search.

mod row;

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::format::{Format, Markup, Shape};
use crate::formats;
pub(crate) use row::{Entry, MAX_NAME, Row, first_chars};

/// How a model writes its calls: in one format, several, or any.
#[derive(Clone)]
pub struct Dialect(Arc<Compiled>);

impl Dialect {
    /// All formats; the text decides which one.
    #[must_use]
    pub fn auto() -> Self {
        static AUTO: LazyLock<Dialect> = LazyLock::new(|| Dialect(Arc::new(Compiled::new("auto", &formats::all().collect::<Vec<_>>()))));
        AUTO.clone()
    }

    /// No format: calls are native, and text is only text.
    #[must_use]
    pub fn native() -> Self {
        static NATIVE: LazyLock<Dialect> = LazyLock::new(|| Dialect(Arc::new(Compiled::new("native", &[]))));
        NATIVE.clone()
    }

    /// The dialect of this name: `auto`, `native`, or one of [`Dialect::names`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        static NAMED: [OnceLock<Dialect>; formats::COUNT] = [const { OnceLock::new() }; formats::COUNT];
        match name {
            "auto" => return Some(Self::auto()),
            "native" => return Some(Self::native()),
            _ => {}
        }
        let name = full_name(name);
        let place = formats::all().position(|format| format.name == name)?;
        let make = || Self(Arc::new(Compiled::new(name, &formats::all().filter(|row| row.name == name).collect::<Vec<_>>())));
        Some(NAMED[place].get_or_init(make).clone())
    }

    /// Several formats at once. Returns `None` if a name is unknown.
    #[must_use]
    pub fn of(names: &[&str]) -> Option<Self> {
        let names: Vec<&str> = names.iter().map(|name| full_name(name)).collect();
        let rows: Vec<_> = formats::all().filter(|format| names.contains(&format.name)).collect();
        let known = names.iter().all(|name| rows.iter().any(|row| row.name == *name));
        (known && !rows.is_empty()).then(|| Self(Arc::new(Compiled::new(&names.join("+"), &rows))))
    }

    /// The names of all formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let seen = |name: &str, before: usize| formats::all().take(before).any(|format| format.name == name);
        formats::all().enumerate().filter(move |(place, format)| !seen(format.name, *place)).map(|(_, format)| format.name)
    }

    /// Which models use a format.
    #[must_use]
    pub fn who(name: &str) -> Option<&'static str> {
        formats::all().find(|format| format.name == name).map(|format| format.who)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.0
    }

    /// What a code fence at the end of a message may contain: the formats of this dialect, and calls as plain JSON.
    pub(crate) fn in_fence(&self) -> Self {
        const PLAIN: [&str; 5] = ["helve_json", "openai_json", "llama3_json", "xlam", "pythonic"];
        let own = self.0.rows.iter().filter(|row| !row.foreign).map(|row| row.format.name);
        let names: Vec<&str> = own.chain(PLAIN).collect();
        Self::of(&names).unwrap_or_else(Self::auto)
    }
}

/// Short and former names of the two prompted formats.
fn full_name(name: &str) -> &str {
    match name {
        "json" | "seed_json" => "helve_json",
        "xml" | "seed_xml_cdata" => "helve_xml",
        name => name,
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dialect").field(&self.0.name).finish()
    }
}

/// A literal to search for, and its meaning.
#[derive(Debug)]
pub(crate) struct Marker {
    pub text: String,
    /// The byte of it that is searched for.
    pub anchor: usize,
    pub meaning: Meaning,
    /// Whether it is markup rather than text if no call follows.
    pub token: bool,
}

#[derive(Debug)]
pub(crate) enum Meaning {
    /// Calls follow, in one of these formats.
    Calls(Vec<(Arc<Row>, Entry)>),
    /// Reasoning follows, up to this.
    Thinks(&'static str),
    Token,
    /// Everything up to this is markup, including the literal itself.
    Through(&'static str, usize),
}

/// The formats of a dialect and all their markers.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub name: String,
    pub rows: Vec<Arc<Row>>,
    pub bare: Vec<Arc<Row>>,
    pub markers: Vec<Marker>,
    /// For each byte, the markers whose anchor it is.
    pub anchored: Vec<Anchored>,
    pub anchors: Anchors,
    /// Markers that close calls: after a call they are markup.
    pub closes: Vec<&'static str>,
    /// Control tokens.
    pub tokens: Vec<String>,
    /// Markers that have bytes before their anchor.
    pub leading: Vec<u16>,
    /// The first bytes of those markers, and the maximum length before the anchor.
    pub lead_bytes: Vec<u8>,
    pub longest_lead: usize,
}

/// The markers of one anchor byte.
#[derive(Debug, Default)]
pub(crate) struct Anchored {
    all: Vec<u16>,
    /// Indexed by the next byte, which rules out most of them.
    by_next: Vec<(u8, Vec<u16>)>,
}

impl Anchored {
    fn split(&mut self, byte: u8, markers: &[Marker]) {
        // An object may have white space between its tokens.
        if self.all.len() < 2 || byte == b'{' {
            return;
        }
        for place in &self.all {
            let marker = &markers[usize::from(*place)];
            let Some(next) = marker.text.as_bytes().get(marker.anchor + 1).copied() else {
                self.by_next.clear();
                return;
            };
            match self.by_next.iter_mut().find(|(known, _)| *known == next) {
                Some((_, places)) => places.push(*place),
                None => self.by_next.push((next, vec![*place])),
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The markers that allow this next byte.
    pub fn with(&self, next: Option<u8>) -> &[u16] {
        match next {
            Some(next) if !self.by_next.is_empty() => {
                self.by_next.iter().find(|(known, _)| *known == next).map_or(&[], |(_, places)| places)
            }
            _ => &self.all,
        }
    }
}

/// Bytes at which the search through prose stops.
#[derive(Debug)]
pub(crate) enum Anchors {
    Two(u8, u8),
    Three(u8, u8, u8),
    Many(Box<[bool; 256]>),
}

impl Anchors {
    fn new(bytes: &[u8]) -> Self {
        match *bytes {
            [one] => Self::Two(one, one),
            [one, two] => Self::Two(one, two),
            [one, two, three] => Self::Three(one, two, three),
            _ => {
                let mut table = Box::new([false; 256]);
                for byte in bytes {
                    table[usize::from(*byte)] = true;
                }
                Self::Many(table)
            }
        }
    }

    pub fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Two(one, two) => memchr::memchr2(*one, *two, bytes),
            Self::Three(one, two, three) => memchr::memchr3(*one, *two, *three, bytes),
            Self::Many(table) => {
                let found = |byte: &u8| table[usize::from(*byte)];
                // Eight at a time with one branch, then the exact one.
                let (eights, _) = bytes.as_chunks::<8>();
                let clear = eights.iter().take_while(|eight| !eight.iter().fold(false, |any, byte| any | found(byte))).count() * 8;
                bytes[clear..].iter().position(found).map(|at| at + clear)
            }
        }
    }
}

const THINKS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
const TAILS: [&str; 9] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_start|>",
    "<｜end▁of▁sentence｜>",
    "<|end_of_turn|>",
    "<eos>",
];

impl Compiled {
    fn new(name: &str, formats: &[&'static Format]) -> Self {
        let shares = |other: &Format| {
            let opens = |format: &Format| format.section.open.iter().chain(format.call.open).copied().collect::<Vec<_>>();
            formats.iter().any(|own| opens(own).iter().any(|open| opens(other).contains(open)))
        };
        let own = |format: &Format| formats.iter().any(|own| std::ptr::eq(*own, format));
        let foreign = formats::all().filter(|format| !own(format) && shares(format));
        let mut rows: Vec<Row> =
            formats.iter().map(|format| Row::new(format, false)).chain(foreign.map(|format| Row::new(format, true))).collect();
        row::share_keys(&mut rows);
        let rows: Vec<Arc<Row>> = rows.into_iter().map(Arc::new).collect();
        let mut made = Self {
            name: name.to_owned(),
            bare: rows.iter().filter(|row| row.format.bare && !row.foreign).cloned().collect(),
            closes: Vec::new(),
            markers: Vec::new(),
            anchored: (0..256).map(|_| Anchored::default()).collect(),
            anchors: Anchors::Two(b'`', b'`'),
            leading: Vec::new(),
            tokens: Vec::new(),
            lead_bytes: Vec::new(),
            longest_lead: 0,
            rows,
        };
        made.collect();
        made.index();
        made
    }

    fn collect(&mut self) {
        for row in self.rows.clone() {
            let format = row.format;
            // Of another format, only the markers count that a format of the dialect has too.
            let known = |made: &Self, open: &str| !row.foreign || made.markers.iter().any(|marker| marker.text == open);
            for open in format.section.open {
                if known(self, open) {
                    self.calls(open, &row, Entry::Section);
                }
            }
            for open in format.call.open {
                if known(self, open) {
                    self.calls(open, &row, if matches!(format.shape, Shape::Channel) { Entry::Element } else { Entry::Call });
                }
            }
            if row.foreign {
                continue;
            }
            self.closes.extend(format.section.close.iter().chain(format.call.close).filter(|mark| mark.len() > 3));
            if let Some(tags) = &row.tags {
                for open in tags.call_open.clone() {
                    if format.call.open.is_empty() {
                        self.calls(&open, &row, Entry::Element);
                    }
                }
            }
            for (open, close) in format.thinks.iter().chain(&THINKS) {
                self.add(open, Meaning::Thinks(close));
                self.add(close, Meaning::Token);
            }
            for markup in format.markup {
                match *markup {
                    Markup::Token(token) => self.add(token, Meaning::Token),
                    Markup::Through(open, close) => self.add(open, Meaning::Through(close, close.len())),
                    Markup::Upto(open, stop) => self.add(open, Meaning::Through(stop, 0)),
                }
            }
        }
        for tail in TAILS {
            self.add(tail, Meaning::Token);
        }
    }

    fn calls(&mut self, open: &str, row: &Arc<Row>, entry: Entry) {
        if let Some(marker) = self.markers.iter_mut().find(|marker| marker.text == open) {
            match &mut marker.meaning {
                Meaning::Calls(rows) => rows.push((Arc::clone(row), entry)),
                other => *other = Meaning::Calls(vec![(Arc::clone(row), entry)]),
            }
            return;
        }
        self.add(open, Meaning::Calls(vec![(Arc::clone(row), entry)]));
    }

    fn add(&mut self, text: &str, meaning: Meaning) {
        let token = matches!(meaning, Meaning::Token);
        if let Some(marker) = self.markers.iter_mut().find(|marker| marker.text == text) {
            marker.token |= token;
            return;
        }
        let rare = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b' ';
        let anchor = text.bytes().position(|byte| rare(&byte)).unwrap_or(0);
        self.markers.push(Marker { text: text.to_owned(), anchor, meaning, token });
    }

    fn index(&mut self) {
        // Longest first, so that `<|start|>` never hides a longer marker.
        self.markers.sort_by_key(|marker| std::cmp::Reverse(marker.text.len()));
        let mut bytes = vec![b'`'];
        for (place, marker) in self.markers.iter().enumerate() {
            let byte = marker.text.as_bytes()[marker.anchor];
            let place = u16::try_from(place).unwrap_or(u16::MAX);
            self.anchored[usize::from(byte)].all.push(place);
            if marker.anchor > 0 {
                self.leading.push(place);
                self.longest_lead = self.longest_lead.max(marker.anchor);
                if !self.lead_bytes.contains(&marker.text.as_bytes()[0]) {
                    self.lead_bytes.push(marker.text.as_bytes()[0]);
                }
            }
            if !bytes.contains(&byte) {
                bytes.push(byte);
            }
        }
        self.anchors = Anchors::new(&bytes);
        self.tokens = self.markers.iter().filter(|marker| marker.token).map(|marker| marker.text.clone()).collect();
        for byte in bytes {
            self.anchored[usize::from(byte)].split(byte, &self.markers);
        }
    }
}
