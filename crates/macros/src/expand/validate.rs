//! Generates the method that validates arguments with the author's function.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Ident;

use super::{Tool, here};
use crate::attributes::Validate;
use crate::self_name::self_named;

impl Tool<'_> {
    /// Generates the method that validates arguments. Returns `None` if there is no `validate` attribute.
    pub(super) fn validate(&self) -> Option<TokenStream> {
        let Self { function, private, .. } = self;
        let span = Span::mixed_site();
        let given = function.arguments().map(|argument| {
            let field = (!argument.flatten).then_some(&argument.ident).into_iter();
            quote_spanned!(span=> &arguments #(.#field)*)
        });
        let result = match self.attributes.validate.as_ref()? {
            Validate::Method(method) => quote_spanned!(here(method)=> self.this.#method(#(#given),*)),
            Validate::Function(path) => {
                let span = here(path);
                let path = path.to_token_stream();
                let path = self.owner.map_or(path.clone(), |owner| self_named(path, &owner.self_ty.to_token_stream()));
                quote_spanned!(span=> #path(#(#given),*))
            }
        };
        let error = Ident::new("error", span);
        let failed = self.failed(&error);
        Some(quote_spanned! {span=>
            fn validate(&self, call: &#private::ToolCall) -> ::core::result::Result<(), #private::ToolError> {
                let arguments = #private::function::arguments::<__Arguments>(call)?;
                let result: ::core::result::Result<(), _> = #result;
                #private::function::checked(match result {
                    ::core::result::Result::Ok(()) => ::core::result::Result::Ok(()),
                    ::core::result::Result::Err(#error) => ::core::result::Result::Err(#failed),
                })
            }
        })
    }
}
