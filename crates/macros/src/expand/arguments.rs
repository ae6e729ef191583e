//! Generates the type of the arguments: one field for each argument, and functions for defaults.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::Ident;

use super::{Tool, here};
use crate::parameter::Argument;

impl Tool<'_> {
    /// Generates the type of the arguments, and functions for defaults.
    pub(super) fn arguments(&self) -> TokenStream {
        let private = &self.private;
        if let Some(Argument { ty, .. }) = self.function.flattened() {
            return quote_spanned! {Span::mixed_site()=>
                const _: fn() = #private::function::argument::<#ty>;
                type __Arguments = #ty;
            };
        }
        let expecting = format!("an object with the arguments of `{}`", self.name);
        let (serde, schemars) = (path_text(private, "serde"), path_text(private, "schemars"));
        let fields = self.function.arguments().enumerate().map(|(index, argument)| field(index, argument));
        let defaults = self.function.arguments().enumerate().filter_map(|(index, argument)| self.default(index, argument));
        let checks = self
            .function
            .arguments()
            .map(|Argument { ty, .. }| quote_spanned!(here(ty)=> const _: fn() = #private::function::argument::<#ty>;));
        quote_spanned! {Span::mixed_site()=>
            #(#checks)*

            #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
            #[serde(crate = #serde, deny_unknown_fields, expecting = #expecting)]
            #[schemars(crate = #schemars)]
            #[allow(non_snake_case)]
            struct __Arguments {
                #(#fields,)*
            }

            #(#defaults)*
        }
    }

    fn default(&self, index: usize, argument: &Argument) -> Option<TokenStream> {
        let (value, ty, name) = (argument.default.as_ref()?, &argument.ty, default_name(index));
        let private = &self.private;
        let local = Ident::new("value", here(ty));
        // With this span, the compiler points at the type if the default cannot be serialised for the model.
        let told = quote_spanned!(here(ty)=> #private::function::default_value(value));
        Some(quote_spanned! {Span::mixed_site()=>
            fn #name() -> #ty {
                let #local: #ty = #value;
                #told
            }
        })
    }
}

/// Generates a field of the type of the arguments.
fn field(index: usize, argument: &Argument) -> TokenStream {
    let Argument { ident, name, ty, description, default, schema, flatten: _ } = argument;
    let description = description.iter();
    let default = default.iter().map(|_| default_name(index).to_string());
    quote_spanned! {Span::mixed_site()=>
        #[serde(rename = #name #(, default = #default)*)]
        #(#[schemars(description = #description)])*
        #(#schema)*
        #ident: #ty
    }
}

fn default_name(index: usize) -> Ident {
    format_ident!("__default_{index}", span = Span::mixed_site())
}

fn path_text(private: &TokenStream, name: &str) -> String {
    format!("{private}::{name}").replace(' ', "")
}
