//! What stands in the parentheses of `#[tool(...)]`.

mod values;

use std::time::Duration;

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitStr, Path, Result, Token, parse_quote};

pub(crate) use self::values::{NAME_RULE, is_name};
use self::values::{duration, equals, filled, flag, name, number, permission, priority, text};

/// Every attribute, and how it is written.
const KNOWN: [(&str, &str); 18] = [
    ("name", "name = \"get_time\""),
    ("title", "title = \"Clock\""),
    ("description", "description = \"Tells the time.\""),
    ("permission", "permission = \"confirm\""),
    ("timeout", "timeout = \"30s\""),
    ("idempotent", "idempotent"),
    ("retries", "retries = 3"),
    ("cache", "cache = \"5m\""),
    ("cache_per_caller", "cache_per_caller"),
    ("background", "background"),
    ("priority", "priority = 5"),
    ("delay", "delay = \"10m\""),
    ("exclusive", "exclusive"),
    ("ends_run", "ends_run"),
    ("concurrency", "concurrency = 4"),
    ("output", "output"),
    ("validate", "validate = check_arguments"),
    ("crate", "crate = helve_core"),
];

/// The attributes of one tool. A flag is where it was written.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    /// A variant of `Permission`.
    pub(crate) permission: Option<Ident>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idempotent: Option<Span>,
    pub(crate) retries: Option<u32>,
    pub(crate) cache: Option<Duration>,
    pub(crate) cache_per_caller: Option<Span>,
    pub(crate) background: Option<Span>,
    pub(crate) priority: Option<i8>,
    pub(crate) delay: Option<Duration>,
    pub(crate) exclusive: Option<Span>,
    pub(crate) ends_run: Option<Span>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) output: Option<Span>,
    pub(crate) validate: Option<Validate>,
    pub(crate) runtime: Option<Path>,
}

/// What refuses arguments.
pub(crate) enum Validate {
    /// A function.
    Function(Path),
    /// A method of the value that a method belongs to: `self.check`.
    Method(Ident),
}

impl Attributes {
    fn read(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        let known = KNOWN.iter().find(|(name, _)| key == name);
        let Some((_, example)) = known else { return Err(unknown(key)) };
        match key.to_string().as_str() {
            "name" => self.name = Some(name(text(key, example, input)?)?),
            "title" => self.title = Some(filled(text(key, example, input)?)?),
            "description" => self.description = Some(filled(text(key, example, input)?)?),
            "permission" => self.permission = Some(permission(key, example, input)?),
            "timeout" => self.timeout = Some(duration(&text(key, example, input)?)?),
            "priority" => self.priority = Some(priority(key, example, input)?),
            "delay" => self.delay = Some(duration(&text(key, example, input)?)?),
            "retries" => self.retries = Some(number(key, example, input)?),
            "cache" => self.cache = Some(duration(&text(key, example, input)?)?),
            "concurrency" => self.concurrency = Some(number(key, example, input)?),
            "crate" => {
                equals(key, example, input)?;
                self.runtime = Some(input.call(Path::parse_mod_style)?);
            }
            "validate" => {
                equals(key, example, input)?;
                self.validate = Some(input.parse()?);
            }
            "idempotent" => self.idempotent = Some(flag(key, input)?),
            "cache_per_caller" => self.cache_per_caller = Some(flag(key, input)?),
            "background" => self.background = Some(flag(key, input)?),
            "exclusive" => self.exclusive = Some(flag(key, input)?),
            "ends_run" => self.ends_run = Some(flag(key, input)?),
            "output" => self.output = Some(flag(key, input)?),
            _ => return Err(unknown(key)),
        }
        Ok(())
    }
}

impl Parse for Attributes {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut attributes = Self::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            if !input.peek(Ident::peek_any) {
                return Err(input.error(format!("expected an attribute; known are {}", known_names())));
            }
            let key = input.call(Ident::parse_any)?;
            if seen.contains(&key) {
                return Err(Error::new_spanned(&key, format!("`{key}` is given twice")));
            }
            attributes.read(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let missing = |key: &str, needed: &str, why: &str| match seen.iter().find(|seen| *seen == key) {
            Some(key) if !seen.iter().any(|seen| seen == needed) => Err(Error::new_spanned(key, why)),
            _ => Ok(()),
        };
        missing("retries", "idempotent", "only an idempotent tool is tried again: add `idempotent`, or leave out `retries`")?;
        missing("cache_per_caller", "cache", "nothing is kept without `cache`: add `cache = \"5m\"`, or leave out `cache_per_caller`")?;
        missing("priority", "background", "only calls in the background wait in a queue: add `background`, or leave out `priority`")?;
        missing("delay", "background", "only calls in the background wait in a queue: add `background`, or leave out `delay`")?;
        Ok(attributes)
    }
}

impl Parse for Validate {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Token![self]) && input.peek2(Token![.]) {
            input.parse::<Token![self]>()?;
            input.parse::<Token![.]>()?;
            return input.parse().map(Self::Method);
        }
        let wrong = |error: Error| {
            Error::new(error.span(), "`validate` names a function: `validate = check`, or a method: `validate = self.check`")
        };
        input.call(Path::parse_mod_style).map(Self::Function).map_err(wrong)
    }
}

/// The path of the crate that generated code stands on, where none is written.
pub(crate) fn usual_runtime() -> Path {
    parse_quote!(::helve)
}

fn unknown(key: &Ident) -> Error {
    let written = key.to_string();
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&written, name);
    let nearest = KNOWN.iter().map(|(name, _)| (likeness(name), name)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    let hint = match nearest {
        Some((likeness, name)) if likeness >= 0.5 => format!("; did you mean `{name}`?"),
        _ => String::new(),
    };
    Error::new_spanned(key, format!("`#[tool]` has no attribute `{written}`{hint}\nknown are {}", known_names()))
}

fn known_names() -> String {
    KNOWN.map(|(name, _)| format!("`{name}`")).join(", ")
}
