//! Replaces `Self` with the name of the type, for generated code outside the `impl` block.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Type;

use crate::parameter::Parameter;
use crate::signature::{Function, Returns};

impl Function {
    /// Replaces `Self` in the types and defaults of the function.
    pub(crate) fn name_self(&mut self, name: &Type) {
        for parameter in &mut self.parameters {
            if let Parameter::Argument(argument) = parameter {
                argument.ty = name_self_in(&argument.ty, name);
                argument.default = argument.default.take().map(|value| self_named(value, &name.to_token_stream()));
            }
        }
        if let Returns::Type { whole, held } = &mut self.returns {
            **whole = name_self_in(whole, name);
            for ty in held {
                *ty = name_self_in(ty, name);
            }
        }
    }
}

fn name_self_in(ty: &Type, name: &Type) -> Type {
    syn::parse2(self_named(ty.to_token_stream(), &name.to_token_stream())).unwrap_or_else(|_| ty.clone())
}

/// Replaces `Self` with `name` in tokens.
pub(crate) fn self_named(tokens: TokenStream, name: &TokenStream) -> TokenStream {
    let named = |token| match token {
        TokenTree::Ident(ident) if ident == "Self" => name.clone(),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), self_named(group.stream(), name));
            inner.set_span(group.span());
            TokenTree::Group(inner).into()
        }
        other => other.into(),
    };
    tokens.into_iter().flat_map(named).collect()
}
