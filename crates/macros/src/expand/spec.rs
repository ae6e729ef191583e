//! Generates the expression for a tool's spec, with the rules from its attributes.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;

use super::{Tool, here};
use crate::signature::Returns;

impl Tool<'_> {
    /// Generates the expression for the spec.
    pub(super) fn spec(&self) -> TokenStream {
        let Self { private, name, description, .. } = self;
        let ident = self.function.item.sig.ident.unraw();
        let path = match self.owner {
            Some(owner) => format!("{}::{ident}", owner.self_ty.to_token_stream().to_string().replace(' ', "")),
            None => ident.to_string(),
        };
        let title = self.attributes.title.iter();
        let rules = self.rules();
        let output = self.output().into_iter();
        quote_spanned! {Span::mixed_site()=>
            #private::function::spec(#name, #description, #private::function::input::<__Arguments>())
                #(.with_title(#title))*
                #(.with_output(#output))*
                .with_rules(#rules)
                .with_origin(#private::ToolKind::Builtin, ::core::concat!(::core::module_path!(), "::", #path))
                .share()
        }
    }

    /// Generates the expression for the declared schema of the result, if there is one.
    fn output(&self) -> Option<TokenStream> {
        let private = &self.private;
        let Returns::Type { whole, held } = &self.function.returns else { return None };
        self.attributes.output?;
        let schema = quote_spanned!(here(held.first().unwrap_or(whole))=> .schema());
        Some(quote_spanned! {here(whole)=> {
            use #private::function::returned::{ProbeResult as _, ProbeValue as _};
            (&&#private::function::returned::Probe::<#whole>::new())#schema
        }})
    }

    fn rules(&self) -> TokenStream {
        let Self { private, attributes, .. } = self;
        let (span, rules) = (Span::mixed_site(), &attributes.rules);
        let per_caller = attributes.cache_per_caller || self.function.context().is_some();
        let cache = attributes.cache.iter();
        let cache = cache.map(|ttl| quote_spanned!(span=> .cache(#private::CacheRule { ttl: #ttl, per_caller: #per_caller })));
        quote_spanned! {span=> {
            #[allow(unused_imports)]
            use #private::{Mode, Permission};
            #private::Rules::default() #(#rules)* #(#cache)*
        }}
    }
}
