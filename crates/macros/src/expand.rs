//! Generates the code of `#[tool]` for a function.
//!
//! Generated code uses only `std` and the items that the runtime crate re-exports in `__private`, so that a user's crate needs no other
//! dependency. The local names in generated code are hygienic, so that a function can be called `call` or `arguments`.

mod arguments;
mod call;
mod methods;
mod spec;
mod validate;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{ItemFn, ItemImpl, Path};

use crate::attributes::{Attributes, NAME_RULE, Validate, is_name, usual_runtime};
use crate::parameter::is;
use crate::problems::Problems;
use crate::signature::{Function, Returns};

pub(crate) use self::methods::tools;

/// Maximum length of a description in bytes, as in `ToolSpec`.
const MAX_DESCRIPTION: usize = 64 << 10;

/// Expands `#[tool]`.
pub(crate) fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let attributes = problems.keep(syn::parse2::<Attributes>(attributes));
    let function = Function::read(item.clone(), &mut problems);
    let function = problems.keep(function);
    let generated = match (&attributes, &function) {
        (Some(attributes), Some(function)) => {
            let runtime = attributes.runtime.clone().unwrap_or_else(usual_runtime);
            Tool::new(attributes, function, None, &runtime, &mut problems).map(|tool| tool.code())
        }
        _ => None,
    };
    // Keep the function even if there is a mistake, so that uses of the function cause no further errors.
    let mut code = function.map_or(item, |function| written(&function.item));
    code.extend(problems.into_code().or(generated));
    code
}

/// A tool for which code is generated.
struct Tool<'a> {
    attributes: &'a Attributes,
    function: &'a Function,
    /// The `impl` block that contains the function, if it is a method.
    owner: Option<&'a ItemImpl>,
    name: String,
    description: String,
    /// The path of `__private` in the runtime crate.
    private: TokenStream,
}

impl<'a> Tool<'a> {
    fn new(
        attributes: &'a Attributes,
        function: &'a Function,
        owner: Option<&'a ItemImpl>,
        runtime: &Path,
        problems: &mut Problems,
    ) -> Option<Self> {
        let ident = &function.item.sig.ident;
        let name = attributes.name.as_ref().map_or_else(|| ident.unraw().to_string(), syn::LitStr::value);
        if !is_name(&name) {
            problems.at(ident, format!("`{name}` is not a valid tool name: {NAME_RULE}; give it one with `name = \"...\"`"));
        }
        let description = problems.keep(description(attributes, function));
        if let Some(flag) = attributes.output {
            check_output(flag, &function.returns, problems);
        }
        if let (Some(Validate::Method(method)), false) = (&attributes.validate, function.has_self) {
            problems.at(method, "this function has no `self`: use a function that takes references to the arguments");
        }
        let private = quote_spanned!(Span::mixed_site()=> #runtime::__private);
        Some(Self { attributes, function, owner, name, description: description?, private })
    }

    fn code(&self) -> TokenStream {
        let Self { function, private, .. } = self;
        let (ident, vis) = (&function.item.sig.ident, &function.item.vis);
        let conditions = function.conditions();
        let about = format!("The function `{}` as a tool.", ident.unraw());
        let (arguments, spec, call, validate) = (self.arguments(), self.spec(), self.call(), self.validate());
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
                    /// Returns the tool.
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
                    #validate
                }

                #private::inventory::submit! {
                    #private::function::LinkedTool { tool: #ident::tool, module: ::core::module_path!() }
                }
            };
        }
    }
}

/// Returns the function as its author wrote it, with some lints disabled.
///
/// These lints do not apply to tools: a tool must own its arguments, can be `async` without awaiting, and its doc comment is for a model.
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
        None => Err(refused("a tool needs a description: add a doc comment that tells the model what the tool does")),
        Some(text) if text.len() > MAX_DESCRIPTION => Err(refused("the description is longer than 64 KiB")),
        Some(text) => Ok(text),
    }
}

/// Reports a return type that has no schema for `output`.
fn check_output(flag: Span, returns: &Returns, problems: &mut Problems) {
    match returns.value() {
        None => problems.add(syn::Error::new(flag, "`output` describes the return value, but this function returns nothing")),
        Some(ty) if is(ty, "Output") => {
            problems.add(syn::Error::new(flag, "an `Output` has no schema: return the type that `output` should describe"));
        }
        Some(_) => {}
    }
}

/// Returns the span of some tokens, with the hygiene of generated code.
fn here(tokens: &impl Spanned) -> Span {
    tokens.span().resolved_at(Span::mixed_site())
}
