//! The expression that makes a tool's spec, with the rules that its attributes ask for.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;

use super::{Tool, here};
use crate::signature::Returns;

impl Tool<'_> {
    /// What the tool says about itself.
    pub(super) fn spec(&self) -> TokenStream {
        let Self { private, name, description, .. } = self;
        let ident = self.function.item.sig.ident.unraw();
        let place = match self.owner {
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
                .with_origin(#private::ToolKind::Builtin, ::core::concat!(::core::module_path!(), "::", #place))
                .share()
        }
    }

    /// The schema that is promised.
    fn output(&self) -> Option<TokenStream> {
        let private = &self.private;
        let Returns::Type { whole, held } = &self.function.returns else { return None };
        self.attributes.output?;
        let schema = quote_spanned!(here(held.first().unwrap_or(whole))=> .schema());
        Some(quote_spanned! {here(whole)=> {
            use #private::function::returned::{ProbeResult as _, ProbeValue as _};
            (&&#private::function::returned::Probe::<#whole>::new()).returned()#schema
        }})
    }

    fn rules(&self) -> TokenStream {
        let Self { private, attributes, .. } = self;
        let span = Span::mixed_site();
        let permission = attributes.permission.iter().map(|variant| quote_spanned!(span=> .permission(#private::Permission::#variant)));
        let mode = attributes.background.iter().map(|_| quote_spanned!(span=> .mode(#private::Mode::Background)));
        let priority = attributes.priority.iter().map(|priority| quote_spanned!(span=> .priority(#priority)));
        let delay = attributes.delay.iter().map(|delay| {
            let delay = duration(*delay);
            quote_spanned!(span=> .delay(#delay))
        });
        let timeout = attributes.timeout.iter().map(|timeout| {
            let timeout = duration(*timeout);
            quote_spanned!(span=> .timeout(#timeout))
        });
        let retries = attributes.retries.iter().map(|retries| quote_spanned!(span=> .retries(#retries)));
        let per_caller = attributes.cache_per_caller.is_some() || self.function.context().is_some();
        let cache = attributes.cache.iter().map(|ttl| {
            let ttl = duration(*ttl);
            quote_spanned!(span=> .cache(#private::CacheRule { ttl: #ttl, per_caller: #per_caller }))
        });
        let idempotent = attributes.idempotent.iter().map(|_| quote_spanned!(span=> .idempotent(true)));
        let ends_run = attributes.ends_run.iter().map(|_| quote_spanned!(span=> .ends_run(true)));
        let exclusive = attributes.exclusive.iter().map(|_| quote_spanned!(span=> .exclusive(true)));
        let concurrency =
            attributes.concurrency.iter().map(|most| quote_spanned!(span=> .concurrency(::core::num::NonZeroU32::new(#most))));
        quote_spanned! {span=>
            #private::Rules::default()
                #(#permission)* #(#mode)* #(#priority)* #(#delay)* #(#timeout)* #(#retries)* #(#cache)* #(#idempotent)* #(#exclusive)* #(#concurrency)* #(#ends_run)*
        }
    }
}

fn duration(duration: Duration) -> TokenStream {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
    quote_spanned!(Span::mixed_site()=> ::core::time::Duration::new(#seconds, #nanoseconds))
}
