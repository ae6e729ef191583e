//! The method that runs the function: in place where it is `async`, else on a thread where it may block.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::Ident;

use super::{Tool, here};
use crate::parameter::{Parameter, Passing};
use crate::signature::Returns;

impl Tool<'_> {
    /// The method that runs the function.
    pub(super) fn call(&self) -> TokenStream {
        let Self { function, private, .. } = self;
        let span = Span::mixed_site();
        let blocks = function.item.sig.asyncness.is_none();
        let clone = quote_spanned!(span=> #private::CallContext::clone(context));
        let given = function.parameters.iter().map(|parameter| match parameter {
            Parameter::Argument(argument) => {
                let ident = &argument.ident;
                quote_spanned!(span=> arguments.#ident)
            }
            Parameter::Context(Passing::Reference) if blocks => quote_spanned!(span=> &context),
            Parameter::Context(Passing::Value) if !blocks => clone.clone(),
            Parameter::Context(_) => quote_spanned!(span=> context),
        });
        let ident = &function.item.sig.ident;
        let run = quote_spanned!(span=> #ident(#(#given),*));
        let run = if blocks {
            let context = function.context().map(|_| quote_spanned!(span=> let context = #clone;));
            let work = self.finish(&run);
            quote_spanned!(span=> #context #private::function::blocking(move || #work).await)
        } else {
            self.finish(&quote_spanned!(span=> #run.await))
        };
        let arguments = function.arguments().next().map(|_| quote_spanned!(span=> let arguments =));
        let context = if function.context().is_some() { quote_spanned!(span=> context) } else { quote_spanned!(span=> _) };
        // Where the future cannot go to another thread, the compiler shows the function and not the attribute.
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

    /// Turns what the function gives back into what a tool does. Where a type cannot, the compiler shows that type.
    fn finish(&self, run: &TokenStream) -> TokenStream {
        let private = &self.private;
        let value_at = |span| {
            let value = Ident::new("value", span);
            // A promised schema is checked against data, and a result that is text otherwise has none.
            let into =
                if self.output.is_some() { quote_spanned!(span=> described) } else { quote_spanned!(span=> IntoOutput::into_output) };
            let output = quote_spanned!(span=> #private::function::#into(#value));
            (value, output)
        };
        match &self.function.returns {
            Returns::Nothing => quote_spanned!(Span::mixed_site()=> #private::function::IntoOutput::into_output(#run)),
            Returns::Value(ty) => {
                let (value, output) = value_at(here(ty));
                quote_spanned!(here(ty)=> { let #value = #run; #output })
            }
            Returns::Result { whole, value, error } => {
                let (value, output) = value_at(here(value.as_ref().unwrap_or(whole)));
                let span = here(error.as_ref().unwrap_or(whole));
                let failed = quote_spanned!(span=> #private::function::into_error(error));
                let error = Ident::new("error", span);
                quote_spanned! {here(whole)=>
                    match #run {
                        ::core::result::Result::Ok(#value) => #output,
                        ::core::result::Result::Err(#error) => ::core::result::Result::Err(#failed),
                    }
                }
            }
        }
    }
}
