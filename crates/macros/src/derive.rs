//! The derives for Helve's own types: setters for options, and the names of variants.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, Result, Type};

use crate::parameter::is;
use crate::signature::type_arguments;

/// Generates a setter for each field of a struct, except for fields with `#[setter(skip)]`.
///
/// A setter takes the value of the field. For an `Option` it also takes the inner value; for a string, a path or a pattern any type that
/// converts into it; for a list of these any iterator over such types.
pub(crate) fn setters(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else { return Err(Error::new_spanned(input, "`Setters` is for structs")) };
    let setters = data.fields.iter().filter(|field| !field.attrs.iter().any(|attribute| attribute.path().is_ident("setter"))).map(setter);
    let ident = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #ident { #(#setters)* }
    })
}

fn setter(field: &Field) -> TokenStream {
    let (name, vis, ty) = (&field.ident, &field.vis, &field.ty);
    let (takes, value) = match type_arguments(ty).next() {
        Some(inner) if is(ty, "Option") && is_text(inner) => (quote!(impl Into<#inner>), quote!(Some(value.into()))),
        Some(inner) if is(ty, "Option") => (quote!(impl Into<Option<#inner>>), quote!(value.into())),
        Some(inner) if is(ty, "Vec") && is_text(inner) => {
            (quote!(impl IntoIterator<Item = impl Into<#inner>>), quote!(value.into_iter().map(Into::into).collect()))
        }
        _ if is_text(ty) => (quote!(impl Into<#ty>), quote!(value.into())),
        _ => (quote!(#ty), quote!(value)),
    };
    let summary = format!("Sets `{}`.", quote!(#name));
    let documentation = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    quote! {
        #[doc = #summary]
        #[doc = ""]
        #(#documentation)*
        #[must_use]
        #vis fn #name(mut self, value: #takes) -> Self {
            self.#name = #value;
            self
        }
    }
}

fn is_text(ty: &Type) -> bool {
    ["String", "PathBuf", "Pattern"].iter().any(|name| is(ty, name)) || (is(ty, "Arc") && type_arguments(ty).any(|inner| is(inner, "str")))
}

/// Generates a method `name` and `Display`, which return the name of a variant in snake case, as serde writes it.
pub(crate) fn name(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else { return Err(Error::new_spanned(input, "`Name` is for enums")) };
    let names = data.variants.iter().map(|variant| {
        let (ident, name) = (&variant.ident, snake_case(&variant.ident.to_string()));
        quote!(Self::#ident { .. } => #name)
    });
    let ident = &input.ident;
    let is_plain = data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit));
    let receiver = if is_plain { quote!(self) } else { quote!(&self) };
    Ok(quote! {
        #[automatically_derived]
        impl #ident {
            /// Returns the name of the variant in JSON, on the command line and in files.
            #[must_use]
            pub const fn name(#receiver) -> &'static str {
                match self { #(#names,)* }
            }
        }

        #[automatically_derived]
        impl ::core::fmt::Display for #ident {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.name())
            }
        }
    })
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}
