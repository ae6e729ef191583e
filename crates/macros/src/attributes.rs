//! Parses the attributes inside `#[tool(...)]`.

mod values;

use std::ops::RangeInclusive;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitStr, Path, Result, Token, parse_quote};

pub(crate) use self::values::{NAME_RULE, is_name};
use self::values::{duration, equals, filled, flag, name, number, permission, text};

/// All attributes, each with an example.
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

/// The range of attributes that are a count.
const COUNT: RangeInclusive<i64> = 1..=u32::MAX as i64;

/// The attributes of one tool.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    /// Calls to the setters of `Rules`, such as `.retries(3)`, with `Mode` and `Permission` in scope.
    pub(crate) rules: Vec<TokenStream>,
    /// An expression for how long results are cached.
    pub(crate) cache: Option<TokenStream>,
    pub(crate) cache_per_caller: bool,
    /// The position of `output`, if the attribute is set.
    pub(crate) output: Option<Span>,
    pub(crate) validate: Option<Validate>,
    pub(crate) runtime: Option<Path>,
}

/// How the arguments are validated.
pub(crate) enum Validate {
    /// By a function.
    Function(Path),
    /// By a method of the value, as in `self.check`.
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
            "permission" => self.rule(key, &permission(key, example, input)?),
            "timeout" | "delay" => self.rule(key, &duration(&text(key, example, input)?)?),
            "priority" => self.rule(key, &number::<i8>(key, example, input, &(-10..=10))?),
            "retries" => self.rule(key, &number::<u32>(key, example, input, &COUNT)?),
            "concurrency" => {
                let most: u32 = number(key, example, input, &COUNT)?;
                self.rule(key, &quote_spanned!(Span::mixed_site()=> ::core::num::NonZeroU32::new(#most)));
            }
            "idempotent" | "exclusive" | "ends_run" => {
                flag(key, input)?;
                self.rule(key, &true);
            }
            "background" => {
                flag(key, input)?;
                self.rules.push(quote_spanned!(Span::mixed_site()=> .mode(Mode::Background)));
            }
            "cache" => self.cache = Some(duration(&text(key, example, input)?)?),
            "cache_per_caller" => self.cache_per_caller = flag(key, input).map(|_| true)?,
            "output" => self.output = Some(flag(key, input)?),
            "crate" => {
                equals(key, example, input)?;
                self.runtime = Some(input.call(Path::parse_mod_style)?);
            }
            "validate" => {
                equals(key, example, input)?;
                self.validate = Some(input.parse()?);
            }
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn rule(&mut self, key: &Ident, value: &impl ToTokens) {
        let setter = Ident::new(&key.to_string(), Span::mixed_site());
        self.rules.push(quote_spanned!(Span::mixed_site()=> .#setter(#value)));
    }
}

impl Parse for Attributes {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut attributes = Self::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            if !input.peek(Ident::peek_any) {
                return Err(input.error(format!("expected an attribute, one of {}", known_names())));
            }
            let key = input.call(Ident::parse_any)?;
            if seen.contains(&key) {
                return Err(Error::new_spanned(&key, format!("duplicate attribute `{key}`")));
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
        missing("retries", "idempotent", "only idempotent tools are retried: add `idempotent`, or remove `retries`")?;
        missing("cache_per_caller", "cache", "nothing is cached without `cache`: add `cache = \"5m\"`, or remove `cache_per_caller`")?;
        missing("priority", "background", "only background calls wait in a queue: add `background`, or remove `priority`")?;
        missing("delay", "background", "only background calls wait in a queue: add `background`, or remove `delay`")?;
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
            Error::new(error.span(), "`validate` takes a function, as in `validate = check`, or a method, as in `validate = self.check`")
        };
        input.call(Path::parse_mod_style).map(Self::Function).map_err(wrong)
    }
}

/// Returns the default path of the runtime crate.
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
    Error::new_spanned(key, format!("`#[tool]` has no attribute `{written}`{hint}\nknown attributes: {}", known_names()))
}

fn known_names() -> String {
    KNOWN.map(|(name, _)| format!("`{name}`")).join(", ")
}
