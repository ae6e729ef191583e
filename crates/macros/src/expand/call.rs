//! Generates the method that runs the function: an `async fn` directly, a plain `fn` on a thread pool.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::Ident;

use super::{Tool, here};
use crate::parameter::{ContextKind, Parameter};
use crate::signature::Returns;

impl Tool<'_> {
    /// Generates the method that runs the function.
    pub(super) fn call(&self) -> TokenStream {
        let Self { function, private, .. } = self;
        let span = Span::mixed_site();
        let blocks = function.item.sig.asyncness.is_none();
        let clone = quote_spanned!(span=> #private::CallContext::clone(context));
        let given = function.parameters.iter().map(|parameter| match parameter {
            Parameter::Argument(argument) if argument.flatten => quote_spanned!(span=> arguments),
            Parameter::Argument(argument) => {
                let ident = &argument.ident;
                quote_spanned!(span=> arguments.#ident)
            }
            Parameter::Context(ContextKind::Reference) if blocks => quote_spanned!(span=> &context),
            Parameter::Context(ContextKind::Value) if !blocks => clone.clone(),
            Parameter::Context(_) => quote_spanned!(span=> context),
        });
        let ident = &function.item.sig.ident;
        let this = function.has_self.then(|| if blocks { quote_spanned!(span=> &this) } else { quote_spanned!(span=> &self.this) });
        let given = this.into_iter().chain(given);
        let path = self.owner.map(|owner| {
            let ty = &owner.self_ty;
            quote_spanned!(span=> <#ty>::)
        });
        let run = quote_spanned!(span=> #path #ident(#(#given),*));
        let run = if blocks {
            let context = function.context().map(|_| quote_spanned!(span=> let context = #clone;));
            let this = function.has_self.then(|| quote_spanned!(span=> let this = ::std::sync::Arc::clone(&self.this);));
            let work = self.finish(&run);
            quote_spanned!(span=> #context #this #private::function::blocking(move || #work).await)
        } else {
            self.finish(&quote_spanned!(span=> #run.await))
        };
        let arguments = function.arguments().next().map(|_| quote_spanned!(span=> let arguments =));
        let context = if function.context().is_some() { quote_spanned!(span=> context) } else { quote_spanned!(span=> _) };
        // With this span, the compiler points at the function if the future is not `Send`.
        let future = quote_spanned! {here(ident)=>
            ::std::boxed::Box::pin(async move {
                #arguments #private::function::arguments::<__Arguments>(call)?;
                #run
            })
        };
        quote_spanned! {span=>
            #[allow(deprecated)]
            fn call<'a>(
                &'a self,
                call: &'a #private::ToolCall,
                #context: &'a #private::CallContext,
            ) -> #private::BoxFuture<'a, ::core::result::Result<#private::Output, #private::ToolError>> {
                #future
            }
        }
    }

    /// Generates the conversion of the return value into an output. With these spans, the compiler points at a type that does not convert.
    fn finish(&self, run: &TokenStream) -> TokenStream {
        let private = &self.private;
        let Returns::Type { whole, held } = &self.function.returns else {
            return quote_spanned!(Span::mixed_site()=> #private::function::IntoOutput::into_output(#run));
        };
        let whole = here(whole);
        let span = held.first().map_or(whole, here);
        // Validation against a declared schema needs data, which a plain string does not have.
        let into = if self.attributes.output.is_some() {
            quote_spanned!(span=> described)
        } else {
            quote_spanned!(span=> IntoOutput::into_output)
        };
        let value = Ident::new("value", span);
        let output = quote_spanned!(span=> #private::function::#into(#value));
        let span = held.get(1).map_or(whole, here);
        let error = Ident::new("error", span);
        let failed = self.failed(&error);
        quote_spanned! {whole=> {
            use #private::function::returned::{ProbeResult as _, ProbeValue as _};
            let returned = #run;
            match (&&#private::function::returned::Probe::of(&returned)).result(returned) {
                ::core::result::Result::Ok(#value) => #output,
                ::core::result::Result::Err(#error) => ::core::result::Result::Err(#failed),
            }
        }}
    }

    /// Generates the conversion of an error into a `ToolError`.
    pub(super) fn failed(&self, error: &Ident) -> TokenStream {
        let private = &self.private;
        quote_spanned! {error.span()=> {
            use #private::function::returned::{ProbeConversion as _, ProbeView as _, ProbeText as _};
            (&&&#private::function::returned::Probe::of(&#error)).error(#error)
        }}
    }
}
