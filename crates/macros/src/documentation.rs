//! Converts doc comments to text for the model.

use syn::{Attribute, Expr, Lit, Meta};

/// Returns the text of an item's doc comments, or `None` if there are none.
///
/// # Errors
/// If a doc comment is not a string literal.
pub(crate) fn text(attributes: &[Attribute]) -> syn::Result<Option<String>> {
    let mut lines = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        if !meta.path.is_ident("doc") {
            continue;
        }
        // The macros in a doc attribute, such as `include_str!`, are not expanded yet.
        let hidden = || syn::Error::new_spanned(&meta.value, "`#[tool]` cannot read this text: write it as a doc comment");
        let text = literal(&meta.value).ok_or_else(hidden)?;
        lines.extend(text.split('\n').map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()));
    }
    let text = lines.join("\n").trim().to_owned();
    Ok((!text.is_empty()).then_some(text))
}

/// Returns the value of a string literal, or `None` for any other expression.
pub(crate) fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn lines_stay_as_they_were_written() {
        let item: syn::ItemFn = parse_quote! {
            /// First line.
            ///
            ///   - indented
            #[doc = ""]
            /// last.
            #[doc(hidden)]
            #[inline]
            fn documented() {}
        };
        let text = text(&item.attrs).expect("readable").expect("a text");
        assert_eq!(text, "First line.\n\n  - indented\n\nlast.");
    }

    #[test]
    fn blank_comments_say_nothing_and_unreadable_ones_are_reported() {
        assert!(matches!(text(&[parse_quote!(#[doc = "  "])]), Ok(None)));
        assert!(text(&[parse_quote!(#[doc = include_str!("x.md")])]).is_err());
    }
}
