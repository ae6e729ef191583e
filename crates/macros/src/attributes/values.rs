//! The values of attributes: texts, numbers, durations, and what each may be.

use std::time::Duration;

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{Error, Ident, LitInt, LitStr, Result, Token};

/// Refuses a name that some model's API would refuse.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// What a name may be, for people.
pub(crate) const NAME_RULE: &str = "a name has 1 to 64 letters, digits, `_` or `-`";

pub(super) fn name(text: LitStr) -> Result<LitStr> {
    if is_name(&text.value()) {
        return Ok(text);
    }
    Err(Error::new_spanned(&text, format!("`{}` cannot be a tool name: {NAME_RULE}", text.value())))
}

pub(super) fn filled(text: LitStr) -> Result<LitStr> {
    if text.value().trim().is_empty() { Err(Error::new_spanned(text, "this text is empty")) } else { Ok(text) }
}

pub(super) fn duration(text: &LitStr) -> Result<Duration> {
    let written = text.value();
    match humantime::parse_duration(&written) {
        Ok(duration) if duration.is_zero() => Err(Error::new_spanned(text, "this must be longer than zero")),
        Ok(duration) => Ok(duration),
        // The list of units that the library tells is longer than the examples, and helps less.
        Err(_) => Err(Error::new_spanned(text, format!("`{written}` is not a duration: write it like \"500ms\", \"30s\" or \"1h 30m\""))),
    }
}

pub(super) fn permission(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<Ident> {
    equals(key, example, input)?;
    let (written, span) = if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        (text.value(), text.span())
    } else {
        let word: Ident = input.parse()?;
        (word.to_string(), word.span())
    };
    let variant = match written.as_str() {
        "auto" => "Auto",
        "confirm" => "Confirm",
        "deny" => "Deny",
        _ => return Err(Error::new(span, format!("`{written}` is not a permission: use `auto`, `confirm` or `deny`"))),
    };
    Ok(Ident::new(variant, Span::call_site()))
}

pub(super) fn number(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<u32> {
    equals(key, example, input)?;
    let wrong = |span| Error::new(span, format!("`{key}` is a number from 1 to {}: `{example}`", u32::MAX));
    let literal: LitInt = input.parse().map_err(|error: Error| wrong(error.span()))?;
    literal.base10_parse().ok().filter(|number| *number > 0).ok_or_else(|| wrong(literal.span()))
}

pub(super) fn priority(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<i8> {
    equals(key, example, input)?;
    let wrong = |span| Error::new(span, format!("`{key}` is a number from -10 to 10: `{example}`"));
    let sign = if input.parse::<Option<Token![-]>>()?.is_some() { -1 } else { 1 };
    let literal: LitInt = input.parse().map_err(|error: Error| wrong(error.span()))?;
    literal.base10_parse::<i8>().ok().filter(|number| *number <= 10).map(|number| sign * number).ok_or_else(|| wrong(literal.span()))
}

pub(super) fn text(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<LitStr> {
    equals(key, example, input)?;
    input.parse().map_err(|error: Error| Error::new(error.span(), format!("`{key}` is a text in quotes: `{example}`")))
}

pub(super) fn flag(key: &Ident, input: ParseStream<'_>) -> Result<Span> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(key.span());
    }
    Err(input.error(format!("`{key}` takes no value: write it alone, or leave it out")))
}

pub(super) fn equals(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<()> {
    if input.parse::<Option<Token![=]>>()?.is_some() {
        return Ok(());
    }
    Err(Error::new_spanned(key, format!("`{key}` needs a value: `{example}`")))
}
