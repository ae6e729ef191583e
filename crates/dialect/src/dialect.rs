//! [`Dialect`]: the formats in which a text may contain calls, with all their markers prepared for one search.

mod row;

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::format::{Format, Markup, Shape};
use crate::formats;
pub(crate) use row::{Entry, MAX_NAME, Row, first_chars};

/// The formats in which a model may write calls as text: one, several, or all.
#[derive(Clone)]
pub struct Dialect(Arc<Compiled>);

impl Dialect {
    /// Returns the dialect of all formats. The text determines which format applies.
    #[must_use]
    pub fn auto() -> Self {
        static AUTO: LazyLock<Dialect> = LazyLock::new(|| Dialect(Arc::new(Compiled::new("auto", &formats::all().collect::<Vec<_>>()))));
        AUTO.clone()
    }

    /// Returns the dialect without formats, for native function calling: text never contains calls.
    #[must_use]
    pub fn native() -> Self {
        static NATIVE: LazyLock<Dialect> = LazyLock::new(|| Dialect(Arc::new(Compiled::new("native", &[]))));
        NATIVE.clone()
    }

    /// Returns the dialect with this name: `auto`, `native`, or one of [`Dialect::names`]. Returns `None` if the name is unknown.
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

    /// Returns a dialect of several formats. Returns `None` if a name is unknown or if there are no names.
    #[must_use]
    pub fn of(names: &[&str]) -> Option<Self> {
        let names: Vec<&str> = names.iter().map(|name| full_name(name)).collect();
        let rows: Vec<_> = formats::all().filter(|format| names.contains(&format.name)).collect();
        let known = names.iter().all(|name| rows.iter().any(|row| row.name == *name));
        (known && !rows.is_empty()).then(|| Self(Arc::new(Compiled::new(&names.join("+"), &rows))))
    }

    /// Returns the names of all formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let seen = |name: &str, before: usize| formats::all().take(before).any(|format| format.name == name);
        formats::all().enumerate().filter(move |(place, format)| !seen(format.name, *place)).map(|(_, format)| format.name)
    }

    /// Returns which models use a format, or `None` if there is no such format.
    #[must_use]
    pub fn who(name: &str) -> Option<&'static str> {
        formats::all().find(|format| format.name == name).map(|format| format.who)
    }

    /// Returns the name of the dialect.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.0
    }

    /// Returns the dialect for the content of a code fence at the end of a message: the formats of this dialect, plain JSON and Python.
    pub(crate) fn in_fence(&self) -> Self {
        const PLAIN: [&str; 5] = ["helve_json", "openai_json", "llama3_json", "xlam", "pythonic"];
        let own = self.0.rows.iter().filter(|row| !row.foreign).map(|row| row.format.name);
        let names: Vec<&str> = own.chain(PLAIN).collect();
        Self::of(&names).unwrap_or_else(Self::auto)
    }
}

/// Returns the full name of a format. The two prompted formats have short and former names.
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

/// A literal that the scanner searches for, and its meaning.
#[derive(Debug)]
pub(crate) struct Marker {
    pub text: String,
    /// Index of the byte in `text` that the search looks for.
    pub anchor: usize,
    pub meaning: Meaning,
    /// Whether the literal is markup rather than text if no call follows.
    pub token: bool,
}

/// What follows a [`Marker`].
#[derive(Debug)]
pub(crate) enum Meaning {
    /// Calls in one of these formats.
    Calls(Vec<(Arc<Row>, Entry)>),
    /// Reasoning, up to this closing marker.
    Thinks(&'static str),
    /// Nothing: the marker is a control token.
    Token,
    /// Markup up to this literal. The number is how many bytes of the literal belong to the markup.
    Through(&'static str, usize),
}

/// The formats of a dialect and all their markers.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub name: String,
    /// The formats of the dialect, then foreign formats that share a marker with them.
    pub rows: Vec<Arc<Row>>,
    /// The formats whose calls may start a message without a marker.
    pub bare: Vec<Arc<Row>>,
    pub markers: Vec<Marker>,
    /// For each byte, the markers with this byte as their anchor.
    pub anchored: Vec<Anchored>,
    pub anchors: Anchors,
    /// Markers that close calls. Directly after a call they are markup.
    pub closes: Vec<&'static str>,
    /// Control tokens.
    pub tokens: Vec<String>,
    /// Indexes of the markers that have bytes before their anchor.
    pub leading: Vec<u16>,
    /// The first bytes of the markers in `leading`.
    pub lead_bytes: Vec<u8>,
    /// Maximum number of bytes before an anchor.
    pub longest_lead: usize,
}

/// The markers with the same anchor byte.
#[derive(Debug, Default)]
pub(crate) struct Anchored {
    all: Vec<u16>,
    /// The markers by the byte after the anchor, which excludes most of them. Empty if the byte is not known for all of them.
    by_next: Vec<(u8, Vec<u16>)>,
}

impl Anchored {
    fn split(&mut self, byte: u8, markers: &[Marker]) {
        // In a JSON object, white space may follow the anchor.
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

    /// Returns the markers that can have `next` after their anchor.
    pub fn with(&self, next: Option<u8>) -> &[u16] {
        match next {
            Some(next) if !self.by_next.is_empty() => {
                self.by_next.iter().find(|(known, _)| *known == next).map_or(&[], |(_, places)| places)
            }
            _ => &self.all,
        }
    }
}

/// The bytes at which the search for markers stops.
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

    /// Returns the index of the first anchor byte.
    pub fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Two(one, two) => memchr::memchr2(*one, *two, bytes),
            Self::Three(one, two, three) => memchr::memchr3(*one, *two, *three, bytes),
            Self::Many(table) => {
                let found = |byte: &u8| table[usize::from(*byte)];
                // Checks eight bytes with one branch, then finds the exact byte.
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
            // A foreign format contributes only markers that a format of the dialect also has.
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
        // Longest first, so that a short marker such as `<|start|>` does not hide a longer one.
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
