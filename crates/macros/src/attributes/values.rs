//! Parses the values of attributes: strings, numbers, durations.

use std::ops::RangeInclusive;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::parse::ParseStream;
use syn::{Error, Ident, LitInt, LitStr, Result, Token};

/// Returns whether every provider accepts the name of a tool.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The rule for names, for error messages.
pub(crate) const NAME_RULE: &str = "a name has 1 to 64 letters, digits, `_` or `-`";

pub(super) fn name(text: LitStr) -> Result<LitStr> {
    if is_name(&text.value()) {
        return Ok(text);
    }
    Err(Error::new_spanned(&text, format!("`{}` is not a valid tool name: {NAME_RULE}", text.value())))
}

pub(super) fn filled(text: LitStr) -> Result<LitStr> {
    if text.value().trim().is_empty() { Err(Error::new_spanned(text, "this string is empty")) } else { Ok(text) }
}

pub(super) fn duration(text: &LitStr) -> Result<TokenStream> {
    let written = text.value();
    match humantime::parse_duration(&written) {
        Ok(duration) if duration.is_zero() => Err(Error::new_spanned(text, "this duration must be longer than zero")),
        Ok(duration) => {
            let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
            Ok(quote_spanned!(Span::mixed_site()=> ::core::time::Duration::new(#seconds, #nanoseconds)))
        }
        // Examples are clearer than the list of units in the library's message.
        Err(_) => Err(Error::new_spanned(text, format!("`{written}` is not a duration: write it like \"500ms\", \"30s\" or \"1h 30m\""))),
    }
}

pub(super) fn permission(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<TokenStream> {
    equals(key, example, input)?;
    let (written, span) = if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        (text.value(), text.span())
    } else {
        let word: Ident = input.parse()?;
        (word.to_string(), word.span())
    };
    match written.as_str() {
        "auto" => Ok(quote_spanned!(Span::mixed_site()=> Permission::Auto)),
        "confirm" => Ok(quote_spanned!(Span::mixed_site()=> Permission::Confirm)),
        "deny" => Ok(quote_spanned!(Span::mixed_site()=> Permission::Deny)),
        _ => Err(Error::new(span, format!("`{written}` is not a permission: use `auto`, `confirm` or `deny`"))),
    }
}

pub(super) fn number<T: TryFrom<i64>>(key: &Ident, example: &str, input: ParseStream<'_>, range: &RangeInclusive<i64>) -> Result<T> {
    equals(key, example, input)?;
    let wrong = |span| Error::new(span, format!("`{key}` takes a number from {} to {}: `{example}`", range.start(), range.end()));
    let sign = if input.peek(Token![-]) && *range.start() < 0 { input.parse::<Token![-]>().map(|_| -1)? } else { 1 };
    let literal: LitInt = input.parse().map_err(|error: Error| wrong(error.span()))?;
    let number = literal.base10_parse::<i64>().ok().map(|number| sign * number).filter(|number| range.contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| wrong(literal.span()))
}

pub(super) fn text(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<LitStr> {
    equals(key, example, input)?;
    input.parse().map_err(|error: Error| Error::new(error.span(), format!("`{key}` takes a string: `{example}`")))
}

pub(super) fn flag(key: &Ident, input: ParseStream<'_>) -> Result<Span> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(key.span());
    }
    Err(input.error(format!("`{key}` takes no value: write it alone, or remove it")))
}

pub(super) fn equals(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<()> {
    if input.parse::<Option<Token![=]>>()?.is_some() {
        return Ok(());
    }
    Err(Error::new_spanned(key, format!("`{key}` needs a value: `{example}`")))
}
