//! Renders inline markup (emphasis, code and links) with one character of lookahead.
//!
//! An opening marker takes effect at once: waiting for the closing marker would delay the text. Open emphasis ends with its
//! paragraph; code and links end with their line.

use anstyle::{AnsiColor, Style};

use super::wrap::LineWrapper;
use crate::terminal::FAINT;

/// Style of inline code.
const CODE: Style = AnsiColor::Cyan.on_default();
/// Maximum length of a link's text, in bytes.
const MAX_LINK_TEXT: usize = 400;
/// Maximum length of a link's URL, in bytes.
const MAX_ADDRESS: usize = 2_000;

/// The inline state of a paragraph.
#[derive(Debug, Default)]
pub struct Inline {
    base: Style,
    strong: Option<char>,
    emphasis: Option<char>,
    struck: bool,
    /// Number of backticks that close the open code.
    code: Option<usize>,
    /// Whether the renderer is inside the text of a link.
    linked: bool,
    /// Whether the current text has already been searched for links.
    no_links: bool,
    /// The character before the undecided markers.
    before: Option<char>,
    /// Repeated markers whose meaning the next character decides.
    run: Option<(char, usize)>,
    link: Option<PendingLink>,
}

/// Text that may become a link.
#[derive(Debug, Default)]
struct PendingLink {
    image: bool,
    text: String,
    /// Whether the text of the link is complete, so that its URL should follow.
    closed: bool,
    address: Option<String>,
    /// Number of open parentheses in the URL.
    depth: usize,
}

impl Inline {
    /// Starts a block with this style.
    pub fn begin(&mut self, base: Style) {
        *self = Self { base, ..Self::default() };
    }

    /// Adds a character of the line.
    pub fn push(&mut self, character: char, out: &mut LineWrapper) {
        if let Some(link) = self.link.take() {
            return self.follow(link, character, out);
        }
        if let Some((marker, count)) = self.run.take() {
            if marker == character && !matches!(marker, '\\' | '!') {
                self.run = Some((marker, count + 1));
                return;
            }
            if self.resolve(marker, count, Some(character), out) {
                return;
            }
        }
        match character {
            '`' => self.run = Some(('`', 1)),
            '*' | '_' | '~' | '\\' | '!' if self.code.is_none() => self.run = Some((character, 1)),
            '[' if self.code.is_none() && !self.linked && !self.no_links => self.link = Some(PendingLink::default()),
            _ => self.write(character, out),
        }
    }

    /// Ends the line. Emphasis may continue on the next line.
    pub fn end_line(&mut self, out: &mut LineWrapper) {
        if let Some(link) = self.link.take() {
            self.release(link, out);
        }
        if let Some((marker, count)) = self.run.take() {
            self.resolve(marker, count, None, out);
        }
        self.code = None;
        self.before = None;
        // Only paragraphs have more than one line.
        if !self.base.is_plain() {
            self.begin(Style::new());
        }
    }

    fn write(&mut self, character: char, out: &mut LineWrapper) {
        out.push(character, self.style());
        self.before = Some(character);
    }

    fn style(&self) -> Style {
        let mut style = self.base;
        if self.code.is_some() {
            style = style.fg_color(CODE.get_fg_color());
        }
        for (on, with) in [
            (self.strong.is_some(), Style::bold as fn(Style) -> Style),
            (self.emphasis.is_some(), Style::italic),
            (self.struck, Style::strikethrough),
            (self.linked, Style::underline),
        ] {
            style = if on { with(style) } else { style };
        }
        style
    }

    /// Decides the meaning of the pending markers from the next character, which is `None` at the end of a line. Returns whether that
    /// character is consumed.
    fn resolve(&mut self, marker: char, count: usize, next: Option<char>, out: &mut LineWrapper) -> bool {
        match (marker, next) {
            ('\\', Some(escaped)) if escaped.is_ascii_punctuation() => {
                self.write(escaped, out);
                return true;
            }
            ('!', Some('[')) if !self.linked && !self.no_links => {
                self.link = Some(PendingLink { image: true, ..PendingLink::default() });
                return true;
            }
            _ => {}
        }
        let understood = match marker {
            '`' => self.toggle_code(count, next),
            '~' => count == 2 && self.toggle_struck(next),
            '*' | '_' => self.toggle_emphasis(marker, count, next),
            _ => false,
        };
        if understood {
            self.before = Some(marker);
        } else {
            (0..count).for_each(|_| self.write(marker, out));
        }
        false
    }

    fn toggle_code(&mut self, count: usize, next: Option<char>) -> bool {
        match self.code {
            Some(open) if open == count => self.code = None,
            None if next.is_some() => self.code = Some(count),
            _ => return false,
        }
        true
    }

    fn toggle_struck(&mut self, next: Option<char>) -> bool {
        if self.struck && !self.after_space() || !self.struck && next.is_some_and(|next| !next.is_whitespace()) {
            self.struck = !self.struck;
            return true;
        }
        false
    }

    fn toggle_emphasis(&mut self, marker: char, count: usize, next: Option<char>) -> bool {
        let inside_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        // `_` inside a word, as in `snake_case`, is not a marker.
        let closes = !(self.after_space() || marker == '_' && inside_word(next));
        let is_open = |slot: Option<char>| slot == Some(marker);
        let (strong, emphasis) = (is_open(self.strong), is_open(self.emphasis));
        match count {
            1 if emphasis && closes => self.emphasis = None,
            2 if strong && closes => self.strong = None,
            3 if strong && emphasis && closes => (self.strong, self.emphasis) = (None, None),
            _ if count > 3 || !self.opens(marker, count, next) => return false,
            1 if self.emphasis.is_none() => self.emphasis = Some(marker),
            2 if self.strong.is_none() => self.strong = Some(marker),
            3 if self.strong.is_none() && self.emphasis.is_none() => (self.strong, self.emphasis) = (Some(marker), Some(marker)),
            _ => return false,
        }
        true
    }

    /// Returns whether a marker looks like emphasis, and not like arithmetic, a name or a glob pattern.
    fn opens(&self, marker: char, count: usize, next: Option<char>) -> bool {
        let Some(next) = next else { return false };
        let joined = |character: char| if marker == '_' { character.is_alphanumeric() } else { character.is_ascii_alphanumeric() };
        let arithmetic = self.before.is_some_and(joined) && (marker == '_' || joined(next));
        let pattern =
            matches!(next, '/' | ',' | ';' | ')' | ']' | '}' | '=' | '|') || count == 1 && matches!(next, '.' | ':' | '?' | '>' | '%');
        !next.is_whitespace() && !arithmetic && !pattern
    }

    fn after_space(&self) -> bool {
        self.before.is_none_or(char::is_whitespace)
    }

    /// Adds a character to a pending link.
    fn follow(&mut self, mut link: PendingLink, character: char, out: &mut LineWrapper) {
        let length = link.address.as_ref().map_or(link.text.len(), String::len);
        let most = if link.address.is_some() { MAX_ADDRESS } else { MAX_LINK_TEXT };
        match (&mut link.address, link.closed, character) {
            _ if length > most => return self.give_up(link, character, out),
            (Some(_), _, ')') if link.depth == 0 => return self.show(&link, out),
            (Some(address), ..) => {
                match character {
                    '(' => link.depth += 1,
                    ')' => link.depth -= 1,
                    _ => {}
                }
                address.push(character);
            }
            (None, true, '(') => link.address = Some(String::new()),
            (None, true, _) | (None, false, '[') => return self.give_up(link, character, out),
            (None, false, ']') => link.closed = true,
            (None, false, _) => link.text.push(character),
        }
        self.link = Some(link);
    }

    fn give_up(&mut self, link: PendingLink, character: char, out: &mut LineWrapper) {
        self.release(link, out);
        self.push(character, out);
    }

    /// Renders a pending link as text, because it is not a link.
    fn release(&mut self, link: PendingLink, out: &mut LineWrapper) {
        if link.image {
            self.write('!', out);
        }
        self.write('[', out);
        link.text.chars().for_each(|character| self.push(character, out));
        if link.closed {
            self.push(']', out);
        }
        if let Some(address) = link.address {
            self.push('(', out);
            // Searching for links again would take quadratic time.
            self.no_links = true;
            address.chars().for_each(|character| self.push(character, out));
            self.no_links = false;
        }
    }

    /// Renders the text of a link, and its URL in faint style.
    fn show(&mut self, link: &PendingLink, out: &mut LineWrapper) {
        let address = link.address.as_deref().unwrap_or_default();
        let address = address.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
        let text = link.text.trim();
        if text.is_empty() || text == address || address.strip_prefix("mailto:") == Some(text) {
            out.push_str(address, self.style().underline());
        } else {
            self.linked = true;
            text.chars().for_each(|character| self.push(character, out));
            if let Some((marker, count)) = self.run.take() {
                self.resolve(marker, count, None, out);
            }
            (self.linked, self.code) = (false, None);
            if !address.is_empty() {
                out.push_str(&format!(" ({address})"), FAINT);
            }
        }
        self.before = Some(')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with its styles written as words: `<b>`, `<i>`, `<s>`, `<c>` for code, `<u>` for links, `<f>` for faint.
    fn shown(text: &str) -> String {
        let mut wrap = LineWrapper::new(usize::MAX);
        let mut inline = Inline::default();
        text.chars().for_each(|character| inline.push(character, &mut wrap));
        inline.end_line(&mut wrap);
        wrap.end_line();
        let mut words = wrap.take();
        for (code, word) in [("1", "b"), ("2", "f"), ("3", "i"), ("4", "u"), ("9", "s"), ("36", "c"), ("0", "/")] {
            words = words.replace(&format!("\u{1b}[{code}m"), &format!("<{word}>"));
        }
        words.trim_end().to_owned()
    }

    #[test]
    fn emphasis_is_shown() {
        assert_eq!(shown("a **b** c *d* __e__ _f_ ~~g~~"), "a <b>b</> c <i>d</> <b>e</> <i>f</> <s>g</>");
        assert_eq!(shown("***x*** **a *b***"), "<b><i>x</> <b>a</><b> </><b><i>b</>");
        assert_eq!(shown("**重点：**内容，*斜体*字"), "<b>重</><b>点：</>内容，<i>斜</><i>体</>字");
    }

    #[test]
    fn what_is_no_emphasis_stays() {
        for text in ["2 * 3 * 4", "2*3*4", "2**8", "snake_case_name", "*.rs and *.toml", "$5*", "a ** b", "**/*.rs", "~5", "a ~~ b", "****"]
        {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown(r"\*no\* \_ C:\dir"), r"*no* _ C:\dir");
    }

    #[test]
    fn code_is_verbatim() {
        assert_eq!(shown("`a*b*c` d"), "<c>a*b*c</> d");
        assert_eq!(shown("``a`b``"), "<c>a`b</>");
        assert_eq!(shown(r"`[x](y) \* !`"), r"<c>[x](y)</><c> \*</><c> !</>");
        assert_eq!(shown("**`x`**"), "<b><c>x</>");
        assert_eq!(shown("a tick `"), "a tick `");
    }

    #[test]
    fn links_show_where_they_lead() {
        let shown_link = "see <u>the</><u> </><i><u>docs</><f> (https://x.y/a_(b))</>, ok";
        assert_eq!(shown("see [the *docs*](https://x.y/a_(b) \"title\"), ok"), shown_link);
        assert_eq!(shown("[`f`](u)"), "<u><c>f</><f> (u)</>");
        assert_eq!(shown("[https://x.y](https://x.y)"), "<u>https://x.y</>");
        assert_eq!(shown("![a cat](cat.png)!"), "<u>a</><u> cat</><f> (cat.png)</>!");
    }

    #[test]
    fn what_is_no_link_stays() {
        for text in ["[1] and [2]", "[x", "[a](b", "a[0][1]", "!", "wow! [ ] todo", "![x"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("[**b** [x](u)"), "[<b>b</> <u>x</><f> (u)</>");
        let long = format!("[{}](x)", "a".repeat(MAX_LINK_TEXT * 2));
        assert_eq!(shown(&long), long);
    }
}
