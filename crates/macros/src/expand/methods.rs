//! Generates the code of `#[tools]`: methods as tools that share a value.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, FnArg, ImplItem, ImplItemFn, ItemFn, ItemImpl, Meta, Path, ReceiverKind, Result, Token};

use super::{Tool, here, written};
use crate::attributes::{Attributes, usual_runtime};
use crate::problems::Problems;
use crate::signature::Function;

/// The attribute inside `#[tools(...)]`: the path of the runtime crate.
struct Runtime(Path);

impl Parse for Runtime {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.is_empty() {
            return Ok(Self(usual_runtime()));
        }
        if !input.peek(Token![crate]) {
            return Err(input.error("`#[tools]` has only the attribute `crate`: put the others into `#[tool(...)]` of a method"));
        }
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        input.call(Path::parse_mod_style).map(Self)
    }
}

/// Expands `#[tools]`.
pub(crate) fn tools(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let runtime = problems.keep(syn::parse2(attributes)).map_or_else(usual_runtime, |Runtime(path)| path);
    let Ok(mut block) = syn::parse2::<ItemImpl>(item.clone()) else {
        problems.add(syn::Error::new(Span::call_site(), "`#[tools]` expects an `impl` block"));
        return item.into_iter().chain(problems.into_code().unwrap_or_default()).collect();
    };
    if let Some((of_trait, _)) = &block.trait_ {
        problems.at(of_trait, "`#[tools]` expects an inherent `impl` block, not the implementation of a trait");
    }
    let methods = take_methods(&mut block, &mut problems);
    if methods.is_empty() {
        problems.at(&block.self_ty, "no method of this block is a tool: add `#[tool]` to at least one");
    }
    let mut names: Vec<String> = Vec::new();
    let mut generated = Vec::new();
    for (attributes, function) in &methods {
        let Some(attributes) = attributes else { continue };
        let Some(tool) = Tool::new(attributes, function, Some(&block), attributes.runtime.as_ref().unwrap_or(&runtime), &mut problems)
        else {
            continue;
        };
        if names.contains(&tool.name) {
            problems.at(&function.item.sig.ident, format!("another tool of this block is already called `{}`", tool.name));
        }
        generated.push(tool.method(&block));
        names.push(tool.name);
    }
    let implementation = implementation(&block, &runtime, &generated);
    let mut code = quote_spanned!(Span::mixed_site()=> #block);
    code.extend(problems.into_code().unwrap_or(implementation));
    code
}

/// Parses the methods with `#[tool]`, and removes the attributes of `#[tool]` from them.
fn take_methods(block: &mut ItemImpl, problems: &mut Problems) -> Vec<(Option<Attributes>, Function)> {
    let name = block.self_ty.clone();
    let mut methods = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some(at) = method.attrs.iter().position(is_tool) else { continue };
        let attribute = method.attrs.remove(at);
        check_receiver(method, problems);
        let ImplItemFn { attrs, vis, modifiers, sig, block } = method.clone();
        let mut function = Function::of(ItemFn { attrs, vis, modifiers, sig, block: Box::new(block) }, problems);
        *item = ImplItem::Verbatim(written(&function.item));
        function.name_self(&name);
        methods.push((problems.keep(read(&attribute)), function));
    }
    methods
}

fn is_tool(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "tool")
}

fn read(attribute: &Attribute) -> Result<Attributes> {
    match &attribute.meta {
        Meta::Path(_) => Ok(Attributes::default()),
        _ => attribute.parse_args(),
    }
}

fn check_receiver(method: &ImplItemFn, problems: &mut Problems) {
    if let Some(FnArg::Receiver(receiver)) = method.sig.inputs.first()
        && !matches!(receiver.kind, ReceiverKind::Reference(_, _, None))
    {
        problems.at(receiver, "calls share the value and run concurrently: take `&self`, and keep mutable state in a `Mutex` or an atomic");
    }
}

/// Generates the implementation of `ToolMethods`.
fn implementation(block: &ItemImpl, runtime: &Path, methods: &[TokenStream]) -> TokenStream {
    let span = Span::mixed_site();
    let private = quote_spanned!(span=> #runtime::__private);
    let (ty, count) = (&block.self_ty, methods.len());
    let (parameters, _, conditions) = block.generics.split_for_impl();
    // With this span, the compiler points at the type if it is not `Send` and `Sync`.
    quote_spanned! {here(ty)=>
        #[automatically_derived]
        impl #parameters #private::ToolMethods for #ty #conditions {
            fn tools(self: ::std::sync::Arc<Self>) -> ::std::vec::Vec<::std::sync::Arc<dyn #private::DynTool>> {
                let mut tools: ::std::vec::Vec<::std::sync::Arc<dyn #private::DynTool>> = ::std::vec::Vec::with_capacity(#count);
                #(#methods)*
                tools
            }
        }
    }
}

impl Tool<'_> {
    /// Generates the code that adds the tool of a method to `tools`.
    fn method(&self, block: &ItemImpl) -> TokenStream {
        let Self { function, private, .. } = self;
        let ty = &block.self_ty;
        let (declared, (parameters, names, bounds)) = (&block.generics, block.generics.split_for_impl());
        let conditions = function.conditions();
        let (arguments, spec, call, validate) = (self.arguments(), self.spec(), self.call(), self.validate());
        let body = quote_spanned! {Span::mixed_site()=>
            #arguments

            struct __Method #declared #bounds {
                spec: ::std::sync::Arc<#private::ToolSpec>,
                this: ::std::sync::Arc<#ty>,
            }

            impl #parameters #private::DynTool for __Method #names #bounds {
                fn spec(&self) -> &::std::sync::Arc<#private::ToolSpec> {
                    &self.spec
                }

                #call
                #validate
            }
        };
        // `self` and `tools` are variables of the enclosing function.
        quote_spanned! {here(ty)=>
            #(#conditions)*
            {
                #body
                #[allow(clippy::needless_update)]
                let spec = #spec;
                tools.push(::std::sync::Arc::new(__Method { spec, this: ::std::sync::Arc::clone(&self) }));
            }
        }
    }
}
