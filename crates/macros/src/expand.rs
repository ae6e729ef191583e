//! The code that `#[tool]` writes beside a function.
//!
//! It names nothing but `std` and what the runtime crate re-exports in `__private`, so a user's crate needs no other
//! dependency. Its own local names are hygienic: a function may be called `call` or `arguments`.

mod arguments;
mod call;
mod spec;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{ItemFn, Type};

use crate::attributes::{Attributes, NAME_RULE, is_name};
use crate::parameter::is;
use crate::problems::Problems;
use crate::signature::{Function, Returns};

/// The longest description that a spec takes, in bytes.
const MAX_DESCRIPTION: usize = 64 << 10;

/// What a function with `#[tool]` becomes.
pub(crate) fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let attributes = problems.keep(syn::parse2::<Attributes>(attributes));
    let function = Function::read(item.clone(), &mut problems);
    let function = problems.keep(function);
    let generated = match (&attributes, &function) {
        (Some(attributes), Some(function)) => Tool::new(attributes, function, &mut problems).map(|tool| tool.code()),
        _ => None,
    };
    // What was written stays, so that one mistake does not make every use of the function another.
    let mut code = function.map_or(item, |function| written(&function.item));
    code.extend(problems.into_code().or(generated));
    code
}

/// A tool that is ready to be written.
struct Tool<'a> {
    attributes: &'a Attributes,
    function: &'a Function,
    name: String,
    description: String,
    output: Option<&'a Type>,
    /// The path of everything that generated code may name.
    private: TokenStream,
}

impl<'a> Tool<'a> {
    fn new(attributes: &'a Attributes, function: &'a Function, problems: &mut Problems) -> Option<Self> {
        let ident = &function.item.sig.ident;
        let name = attributes.name.as_ref().map_or_else(|| ident.unraw().to_string(), syn::LitStr::value);
        if !is_name(&name) {
            problems.at(ident, format!("`{name}` cannot be a tool name: {NAME_RULE}; give it one with `name = \"...\"`"));
        }
        let description = problems.keep(description(attributes, function));
        let output = attributes.output.and_then(|flag| problems.keep(output_type(flag, &function.returns)));
        let runtime = attributes.runtime();
        let private = quote_spanned!(Span::mixed_site()=> #runtime::__private);
        Some(Self { attributes, function, name, description: description?, output, private })
    }

    fn code(&self) -> TokenStream {
        let Self { function, private, .. } = self;
        let (ident, vis) = (&function.item.sig.ident, &function.item.vis);
        let conditions: Vec<_> = function.item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
        let about = format!("The function `{}` as a tool.", ident.unraw());
        let (arguments, spec, call) = (self.arguments(), self.spec(), self.call());
        quote_spanned! {Span::mixed_site()=>
            #(#conditions)*
            #[doc = #about]
            #[allow(non_camel_case_types)]
            #[derive(::core::fmt::Debug)]
            #[non_exhaustive]
            #vis struct #ident {}

            #(#conditions)*
            const _: () = {
                #arguments

                #[automatically_derived]
                impl #ident {
                    /// The tool.
                    #[must_use]
                    #vis fn tool() -> ::std::sync::Arc<dyn #private::DynTool> {
                        ::std::sync::Arc::new(#ident {})
                    }
                }

                #[automatically_derived]
                impl #private::DynTool for #ident {
                    #[allow(clippy::needless_update)]
                    fn spec(&self) -> &::std::sync::Arc<#private::ToolSpec> {
                        static SPEC: ::std::sync::LazyLock<::std::sync::Arc<#private::ToolSpec>> = ::std::sync::LazyLock::new(|| #spec);
                        &SPEC
                    }

                    #call
                }

                #private::inventory::submit! {
                    #private::function::Linked { tool: #ident::tool, module: ::core::module_path!() }
                }
            };
        }
    }
}

/// The function as it was written.
///
/// The lints ask for what a tool cannot give: it must own its arguments, it is asynchronous to run in place even where
/// it awaits nothing, and its doc comment speaks to a model.
fn written(item: &ItemFn) -> TokenStream {
    quote_spanned! {Span::mixed_site()=>
        #[allow(clippy::missing_errors_doc, clippy::needless_pass_by_value, clippy::unused_async)]
        #item
    }
}

fn description(attributes: &Attributes, function: &Function) -> syn::Result<String> {
    let given = attributes.description.as_ref().map(|text| text.value().trim().to_owned());
    let description = given.map_or_else(|| function.documentation.clone(), |text| Ok(Some(text)))?;
    let refused = |why: &str| syn::Error::new_spanned(&function.item.sig.ident, why);
    match description {
        None => Err(refused("a tool needs a description: add a doc comment that tells the model what it does")),
        Some(text) if text.len() > MAX_DESCRIPTION => Err(refused("the description is longer than 64 KiB")),
        Some(text) => Ok(text),
    }
}

/// The type whose schema is promised.
fn output_type(flag: Span, returns: &Returns) -> syn::Result<&Type> {
    let refused = |why: &str| Err(syn::Error::new(flag, why));
    match returns {
        Returns::Nothing => refused("`output` describes what comes back, and this function returns nothing"),
        Returns::Result { value: None, .. } => refused("`output` cannot see what this `Result` holds: write it as `Result<T, E>`"),
        Returns::Value(ty) | Returns::Result { value: Some(ty), .. } if is(ty, "Output") => {
            refused("an `Output` is made by hand and could hold anything: return the type that `output` should describe")
        }
        Returns::Value(ty) | Returns::Result { value: Some(ty), .. } => Ok(ty),
    }
}

/// Where something was written, with names that only generated code sees.
fn here(tokens: &impl Spanned) -> Span {
    tokens.span().resolved_at(Span::mixed_site())
}
