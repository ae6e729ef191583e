//! Decodings of a text, with a map from each decoded byte back to its position in the text.

use super::escape::{Escape, READERS, Reader, may_begin};

/// Maximum depth of nested escapes of different kinds, such as JSON in a URL.
const DEEPEST_MIXED: usize = 2;
/// Maximum depth of nested escapes of one kind, such as JSON in JSON.
const DEEPEST: usize = 4;

/// A text and its decodings.
pub(super) struct Views<'a> {
    text: &'a [u8],
    readers: &'static [Reader],
    read: Vec<View>,
}

/// A text, or another view, with one kind of escape decoded.
struct View {
    bytes: Vec<u8>,
    /// The index of the view that was decoded; `None` for the text itself.
    of: Option<usize>,
    /// The kinds of escapes that were decoded, outermost first, as indices of readers.
    read: Vec<usize>,
    escapes: Vec<EscapeSpan>,
    /// Whether the text ends within an escape. The view omits an incomplete escape.
    is_open: bool,
}

/// The range of a decoded escape in the view (`begin` to `end`) and in its source (`from` to `to`).
struct EscapeSpan {
    begin: usize,
    end: usize,
    from: usize,
    to: usize,
}

impl<'a> Views<'a> {
    /// Creates the decodings of a text. `spaces` is true if a secret contains a space.
    pub(super) fn of(text: &'a str, spaces: bool) -> Self {
        let readers = if spaces { &READERS[..] } else { &READERS[..READERS.len() - 1] };
        let mut views = Self { text: text.as_bytes(), readers, read: Vec::new() };
        if views.text.iter().any(|byte| may_begin(*byte)) {
            views.read_from(None);
            let mut next = 0;
            while next < views.read.len() {
                views.read_from(Some(next));
                next += 1;
            }
        }
        views
    }

    /// Adds a view for each kind of escape in the view `of`.
    fn read_from(&mut self, of: Option<usize>) {
        let so_far = of.and_then(|place| self.read.get(place)).map(|view| view.read.clone()).unwrap_or_default();
        for (place, reader) in self.readers.iter().enumerate() {
            let is_mixed = so_far.iter().any(|before| *before != place);
            if so_far.len() < if is_mixed { DEEPEST_MIXED } else { DEEPEST }
                && let Some(mut view) = View::read(self.bytes(of), *reader)
            {
                (view.of, view.read) = (of, [so_far.as_slice(), &[place]].concat());
                self.read.push(view);
            }
        }
    }

    fn bytes(&self, of: Option<usize>) -> &[u8] {
        of.and_then(|place| self.read.get(place)).map_or(self.text, |view| &view.bytes)
    }

    /// Returns an iterator over all views, the text itself first: the bytes, whether the view ends within an escape, and its index.
    pub(super) fn each(&self) -> impl Iterator<Item = (&[u8], bool, Option<usize>)> {
        let own = std::iter::once((self.text, false, None));
        own.chain(self.read.iter().enumerate().map(|(place, view)| (&*view.bytes, view.is_open, Some(place))))
    }

    /// Maps a range of a view to a range of the text.
    pub(super) fn place(&self, mut view: Option<usize>, mut begin: usize, mut end: usize) -> (usize, usize) {
        while let Some(one) = view.and_then(|place| self.read.get(place)) {
            (begin, end) = (one.source(begin).0, if end > begin { one.source(end - 1).1 } else { one.source(end).0 });
            view = one.of;
        }
        (begin, end)
    }
}

impl View {
    /// Decodes one kind of escape. Returns `None` if the text has no such escape.
    fn read(text: &[u8], reader: Reader) -> Option<Self> {
        let mut view = Self { bytes: Vec::new(), of: None, read: Vec::new(), escapes: Vec::new(), is_open: false };
        let (mut copied, mut at) = (0, 0);
        while let Some(byte) = text.get(at) {
            if !may_begin(*byte) {
                at += 1;
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            match reader(rest) {
                Escape::None => at += 1,
                Escape::Open => {
                    view.is_open = true;
                    break;
                }
                Escape::Read(length, unit) => {
                    view.bytes.extend_from_slice(text.get(copied..at).unwrap_or_default());
                    let begin = view.bytes.len();
                    view.bytes.extend_from_slice(unit.as_bytes());
                    view.escapes.push(EscapeSpan { begin, end: view.bytes.len(), from: at, to: at + length });
                    at += length;
                    copied = at;
                }
            }
        }
        if view.escapes.is_empty() && !view.is_open {
            return None;
        }
        view.bytes.extend_from_slice(text.get(copied..at).unwrap_or_default());
        Some(view)
    }

    /// Returns the range of the source that a decoded byte comes from: the whole escape, or one byte.
    fn source(&self, byte: usize) -> (usize, usize) {
        let before = self.escapes.partition_point(|place| place.begin <= byte);
        match before.checked_sub(1).and_then(|last| self.escapes.get(last)) {
            None => (byte, byte + 1),
            Some(place) if byte < place.end => (place.from, place.to),
            Some(place) => (place.to + byte - place.end, place.to + byte - place.end + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, wanted: &str) -> Option<String> {
        let views = Views::of(text, true);
        let mut places = views.each().filter_map(|(bytes, _, view)| {
            let begin = bytes.windows(wanted.len()).position(|window| window == wanted.as_bytes())?;
            let (from, to) = views.place(view, begin, begin + wanted.len());
            text.get(from..to).map(str::to_owned)
        });
        places.next()
    }

    #[test]
    fn what_is_found_behind_escapes_is_where_the_escapes_are() {
        for (text, wanted, there) in [
            ("a b/c d", "b/c", "b/c"),
            ("x=a%20b%2fc&d", "b/c", "b%2fc"),
            ("x=a+b%2Fc", "a b/c", "a+b%2Fc"),
            (r#"{"x":"b\/c\"\n"}"#, "b/c\"\n", r#"b\/c\"\n"#),
            (r#"{"y":"{\"x\":\"b\\\/c\"}"}"#, "b/c", r"b\\\/c"),
            ("u=%22b%5Cu002Fc%22", "b/c", "b%5Cu002Fc"),
            (r#"{\"y\":\"&%20+x\\\\\\\"z\"}"#, "x\"z", r#"x\\\\\\\"z"#),
            ("<i>b&#x2f;c</i>", "b/c", "b&#x2f;c"),
            ("sh -c 'it'\\''s'", "it's", "it'\\''s"),
            ("ü\\u00fcx", "üüx", "ü\\u00fcx"),
        ] {
            assert_eq!(found(text, wanted).as_deref(), Some(there), "{text}");
        }
        assert_eq!(Views::of("plain text", true).read.len(), 0);
        assert!(Views::of(&"%252525&amp;amp;amp;\\\\\\\\\\\\\\\\+".repeat(50), true).read.len() <= 28);
    }
}
