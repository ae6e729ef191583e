//! A dialect: the formats a text may be in, with their marks put together for one look.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::format::{CallTag, Format, Keys, Markup, Shape};
use crate::formats::TABLE;
use crate::scan::{Match, TagMarks, any, blank_end, literal};

/// How a model writes its calls: one format, several, or any.
#[derive(Clone)]
pub struct Dialect(Arc<Compiled>);

impl Dialect {
    /// Every format; the text decides which.
    #[must_use]
    pub fn auto() -> Self {
        static AUTO: LazyLock<Dialect> = LazyLock::new(|| Dialect(Arc::new(Compiled::new("auto", TABLE.iter().collect()))));
        AUTO.clone()
    }

    /// The dialect of this name: `auto`, or one of [`Dialect::names`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        static NAMED: [OnceLock<Dialect>; TABLE.len()] = [const { OnceLock::new() }; TABLE.len()];
        let name = match name {
            "auto" => return Some(Self::auto()),
            "json" => "seed_json",
            "xml" => "seed_xml_cdata",
            name => name,
        };
        let place = TABLE.iter().position(|format| format.name == name)?;
        let make = || Self(Arc::new(Compiled::new(name, TABLE.iter().filter(|row| row.name == name).collect())));
        Some(NAMED[place].get_or_init(make).clone())
    }

    /// Several formats at once. Unknown names are left out; nothing is left where all are unknown.
    #[must_use]
    pub fn of(names: &[&str]) -> Option<Self> {
        let rows: Vec<_> = TABLE.iter().filter(|format| names.contains(&format.name)).collect();
        (!rows.is_empty()).then(|| Self(Arc::new(Compiled::new(&names.join("+"), rows))))
    }

    /// The names of all formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let first = |place: usize| TABLE[..place].iter().all(|format| format.name != TABLE[place].name);
        (0..TABLE.len()).filter(move |place| first(*place)).map(|place| TABLE[place].name)
    }

    /// Who writes in a format.
    #[must_use]
    pub fn who(name: &str) -> Option<&'static str> {
        TABLE.iter().find(|format| format.name == name).map(|format| format.who)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.0
    }

    /// What may stand in a code fence at the end of a message: the formats of this dialect, and calls as plain JSON.
    pub(crate) fn in_fence(&self) -> Self {
        const PLAIN: [&str; 5] = ["seed_json", "openai_json", "llama3_json", "xlam", "pythonic"];
        let own = self.0.rows.iter().filter(|row| !row.foreign).map(|row| row.format.name);
        let names: Vec<&str> = own.chain(PLAIN).collect();
        Self::of(&names).unwrap_or_else(Self::auto)
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dialect").field(&self.0.name).finish()
    }
}

/// Names, and the white space before them, are looked through this far.
pub(crate) const MAX_NAME: usize = 256;

/// Where a frame is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Behind the mark of a section.
    Section,
    /// Behind the mark of a call.
    Call,
    /// At the mark of a call, which is part of it.
    Element,
    /// At a call without any mark.
    Bare,
}

/// A format in a dialect.
#[derive(Debug)]
pub(crate) struct Row {
    pub format: &'static Format,
    pub tags: Option<TagMarks>,
    pub keys: Vec<&'static Keys>,
    /// What ends a value from outside.
    pub stops: Vec<String>,
    /// What opens a section or a call.
    pub opens: Vec<String>,
    /// It came in because it shares a mark with a format of the dialect, and counts only where that one does not fit.
    pub foreign: bool,
}

impl Row {
    fn new(format: &'static Format, foreign: bool) -> Self {
        let tags = match &format.shape {
            Shape::Tagged(tags) => Some(TagMarks::new(format, tags)),
            _ => None,
        };
        let keys = match &format.shape {
            Shape::Object(keys) => vec![keys],
            _ => Vec::new(),
        };
        let owned = |marks: &[&str]| -> Vec<String> {
            marks.iter().filter(|mark| !mark.starts_with(['{', '}'])).map(|mark| (*mark).to_owned()).collect()
        };
        let own = tags.as_ref().map(|tags| tags.closing.clone()).unwrap_or_default();
        let stops = [own, owned(format.call.close), owned(format.section.close)].concat();
        let opens = [owned(format.call.open), owned(format.section.open)].concat();
        Self { format, tags, keys, stops, opens, foreign }
    }

    /// Whether a call of this shape can start here.
    pub fn can_start(&self, rest: &str, end: bool) -> Match {
        let first = rest.as_bytes().first().copied().unwrap_or(0);
        match &self.format.shape {
            Shape::Object(_) => Match::of(first == b'{'),
            Shape::Channel => match any(rest, self.format.call.open, end).0 {
                Match::No => literal(rest, "to=", end),
                found => found,
            },
            Shape::Braces(_) => literal(rest, "call:", end),
            Shape::Headed { .. } => Match::of(starts_word(rest)),
            Shape::Python => {
                if !starts_word(rest) {
                    return Match::No;
                }
                let window = first_chars(rest, MAX_NAME);
                match window.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))) {
                    Some(at) => Match::of(rest[at..].starts_with('(')),
                    None if end || window.len() < rest.len() => Match::No,
                    None => Match::Partly,
                }
            }
            Shape::Tagged(tags) => match tags.call {
                CallTag::Text(_) => Match::of(starts_word(rest)),
                CallTag::Child(_) => self.tags.as_ref().and_then(|tags| tags.name.as_ref()).map_or(Match::No, |(open, _)| literal(rest, open, end)),
                _ => self.tags.as_ref().map_or(Match::No, |tags| any(rest, &tags.call_open, end).0),
            },
        }
    }

    /// Whether what follows the mark fits this format, as far as its first bytes tell.
    pub fn fits(&self, entry: Entry, body: &str, end: bool) -> Match {
        let rest = &body[blank_end(body, 0)..];
        if body.len() - rest.len() > MAX_NAME {
            return Match::No;
        }
        if rest.is_empty() {
            return if end { Match::No } else { Match::Partly };
        }
        if entry == Entry::Element {
            return Match::Yes;
        }
        if entry == Entry::Section {
            match any(rest, self.format.noise, end).0 {
                Match::No => {}
                found => return found,
            }
            if self.format.list {
                if let Some(inner) = rest.strip_prefix('[') {
                    let inner = &inner[blank_end(inner, 0)..];
                    return match inner.is_empty() {
                        true if end => Match::No,
                        true => Match::Partly,
                        false if inner.starts_with(']') => Match::Yes,
                        false => self.can_start(inner, end),
                    };
                }
            }
            if rest.starts_with('`') {
                return Match::of(matches!(self.format.shape, Shape::Object(_)));
            }
            if !self.format.call.open.is_empty() {
                return any(rest, self.format.call.open, end).0;
            }
        }
        match &self.format.shape {
            Shape::Headed { .. } => self.fits_head(rest, end),
            Shape::Tagged(tags) if matches!(tags.call, CallTag::Text(_)) => self.fits_text(rest, end),
            _ => self.can_start(rest, end),
        }
    }

    /// A name, then the first key or the end: not a word of prose.
    fn fits_text(&self, rest: &str, end: bool) -> Match {
        if !starts_word(rest) {
            return Match::No;
        }
        let Some(tags) = &self.tags else { return Match::No };
        let window = first_chars(rest, MAX_NAME);
        let Some(at) = window.find(['<', '{']) else {
            return if end || window.len() < rest.len() { Match::No } else { Match::Partly };
        };
        let separator = match tags.tags.call {
            CallTag::Text(Some(separator)) => separator.to_owned(),
            _ => tags.parameter_open.clone(),
        };
        let key_close = tags.pair.as_ref().map_or("", |(close, _)| close.as_str());
        let marks: Vec<&str> = [separator.as_str(), &tags.parameter_open, key_close].into_iter().chain(self.format.call.close.iter().copied()).collect();
        any(&rest[at..], &marks, end).0
    }

    /// A name and its separator before the brace.
    fn fits_head(&self, rest: &str, end: bool) -> Match {
        if !starts_word(rest) {
            return Match::No;
        }
        let window = first_chars(rest, MAX_NAME);
        match window.find(['{', '\n', ' ', '<', '[']) {
            Some(_) => Match::Yes,
            None if window.len() < rest.len() => Match::No,
            None if end => Match::Yes,
            None => Match::Partly,
        }
    }
}

/// The first characters of a text, at most so many.
pub(crate) fn first_chars(text: &str, count: usize) -> &str {
    &text[..text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)]
}

fn starts_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// A literal to look for, and what it means.
#[derive(Debug)]
pub(crate) struct Marker {
    pub text: String,
    /// The byte of it that is looked for.
    pub anchor: usize,
    pub meaning: Meaning,
    /// Where no call follows, it is markup rather than words.
    pub token: bool,
}

#[derive(Debug)]
pub(crate) enum Meaning {
    /// Calls follow, in one of these formats.
    Calls(Vec<(Arc<Row>, Entry)>),
    /// Thoughts follow, up to this.
    Thinks(&'static str),
    Token,
    /// Everything up to this is markup, and so are its first bytes.
    Through(&'static str, usize),
}

/// The formats of a dialect and all their marks.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub name: String,
    pub rows: Vec<Arc<Row>>,
    pub bare: Vec<Arc<Row>>,
    pub markers: Vec<Marker>,
    /// For each byte, the markers that have it as their anchor.
    pub anchored: Vec<Anchored>,
    pub anchors: Anchors,
    /// Marks that close calls: behind a call they are markup.
    pub closes: Vec<&'static str>,
    /// Marks that have bytes before their anchor.
    pub leading: Vec<u16>,
}

/// The markers that are looked for with one byte.
#[derive(Debug, Default)]
pub(crate) struct Anchored {
    all: Vec<u16>,
    /// The same by the byte behind, which rules most of them out.
    by_next: Vec<(u8, Vec<u16>)>,
}

impl Anchored {
    fn split(&mut self, byte: u8, markers: &[Marker]) {
        // Between the tokens of an object there may be white space.
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

    /// Those that can stand where this byte is behind.
    pub fn with(&self, next: Option<u8>) -> &[u16] {
        match next {
            Some(next) if !self.by_next.is_empty() => self.by_next.iter().find(|(known, _)| *known == next).map_or(&[], |(_, places)| places),
            _ => &self.all,
        }
    }
}

/// Bytes that a look through prose stops at.
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
                // Eight at a time with one branch, then the one.
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
    fn new(name: &str, formats: Vec<&'static Format>) -> Self {
        let shares = |other: &Format| {
            let opens = |format: &Format| format.section.open.iter().chain(format.call.open).copied().collect::<Vec<_>>();
            formats.iter().any(|own| opens(own).iter().any(|open| opens(other).contains(open)))
        };
        let own = |format: &Format| formats.iter().any(|own| std::ptr::eq(*own, format));
        let foreign = TABLE.iter().filter(|format| !own(format) && shares(format));
        let mut rows: Vec<Row> = formats.iter().map(|format| Row::new(format, false)).chain(foreign.map(|format| Row::new(format, true))).collect();
        share_keys(&mut rows);
        let rows: Vec<Arc<Row>> = rows.into_iter().map(Arc::new).collect();
        let mut made = Self {
            name: name.to_owned(),
            bare: rows.iter().filter(|row| row.format.bare && !row.foreign).cloned().collect(),
            closes: Vec::new(),
            markers: Vec::new(),
            anchored: (0..256).map(|_| Anchored::default()).collect(),
            anchors: Anchors::Two(b'`', b'`'),
            leading: Vec::new(),
            rows,
        };
        made.collect();
        made.index();
        made
    }

    fn collect(&mut self) {
        for row in self.rows.clone() {
            let format = row.format;
            // Of another format only the marks count that a format of the dialect has too.
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
        // The longest one first, so that `<|start|>` never hides a longer mark.
        self.markers.sort_by_key(|marker| std::cmp::Reverse(marker.text.len()));
        let mut bytes = vec![b'`'];
        for (place, marker) in self.markers.iter().enumerate() {
            let byte = marker.text.as_bytes()[marker.anchor];
            let place = u16::try_from(place).unwrap_or(u16::MAX);
            self.anchored[usize::from(byte)].all.push(place);
            if marker.anchor > 0 {
                self.leading.push(place);
            }
            if !bytes.contains(&byte) {
                bytes.push(byte);
            }
        }
        self.anchors = Anchors::new(&bytes);
        for byte in bytes {
            self.anchored[usize::from(byte)].split(byte, &self.markers);
        }
    }
}

/// Formats behind the same mark understand each other's keys; so do those without a mark.
fn share_keys(rows: &mut [Row]) {
    let opens = |row: &Row| row.format.section.open.to_vec();
    let all: Vec<(Vec<&str>, bool, Vec<&'static Keys>)> = rows.iter().filter(|row| !row.foreign).map(|row| (opens(row), row.format.bare, row.keys.clone())).collect();
    for row in rows.iter_mut().filter(|row| !row.keys.is_empty() && !row.foreign) {
        for (others, bare, keys) in &all {
            let shared = (row.format.bare && *bare) || others.iter().any(|open| row.format.section.open.contains(open));
            for key in keys.iter().filter(|_| shared) {
                if !row.keys.iter().any(|own| std::ptr::eq(*own, *key)) && !key.python {
                    row.keys.push(key);
                }
            }
        }
    }
}
