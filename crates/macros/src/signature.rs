//! Parses the function under `#[tool]`: its parameters, its return type, and whether it can be a tool.

use proc_macro2::{Span, TokenStream};
use syn::visit::Visit;
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, Item, ItemFn, PathArguments, ReturnType, Safety, Signature, Type, TypeReference,
};

use crate::documentation;
use crate::parameter::{Argument, ContextKind, Parameter, is, owned_instead, peel};
use crate::problems::Problems;

/// A function that becomes a tool.
pub(crate) struct Function {
    /// The function without the attributes of `#[tool]`.
    pub(crate) item: ItemFn,
    /// The doc comment of the function, or the reason why it cannot be read.
    pub(crate) documentation: syn::Result<Option<String>>,
    /// Whether the function takes `&self`.
    pub(crate) has_self: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) returns: Returns,
}

/// The return type of a function.
pub(crate) enum Returns {
    Nothing,
    Type {
        whole: Box<Type>,
        /// The type arguments of a `Result`, used only for spans: the compiler decides which types are a `Result`.
        held: Vec<Type>,
    },
}

impl Function {
    /// Parses a function.
    ///
    /// # Errors
    /// If the item is not a function. Mistakes in a function are added to `problems`.
    pub(crate) fn read(tokens: TokenStream, problems: &mut Problems) -> syn::Result<Self> {
        let Item::Fn(item) = syn::parse2(tokens)? else {
            return Err(syn::Error::new(Span::call_site(), "`#[tool]` expects a function with a body"));
        };
        if let Some(receiver) = item.sig.receiver() {
            let message = "for a method, put `#[tools]` on its `impl` block as well";
            problems.at(receiver, message);
        }
        Ok(Self::of(item, problems))
    }

    /// Parses a function or a method.
    pub(crate) fn of(mut item: ItemFn, problems: &mut Problems) -> Self {
        check_kind(&item.sig, problems);
        let documentation = documentation::text(&item.attrs);
        let mut parameters = Vec::new();
        for input in &mut item.sig.inputs {
            match input {
                FnArg::Receiver(_) => {}
                FnArg::Typed(typed) => {
                    let parameter = Parameter::take(typed, problems);
                    check_beside(&parameters, parameter.as_ref(), typed, problems);
                    parameters.extend(parameter);
                }
            }
        }
        let returns = Returns::read(&item.sig.output, problems);
        let has_self = item.sig.receiver().is_some();
        let function = Self { item, documentation, has_self, parameters, returns };
        if let (Some(flattened), Some(_)) = (function.flattened(), function.arguments().nth(1)) {
            problems.at(
                &flattened.ident,
                "the fields of this parameter are the only arguments: move the others into it, or remove `#[flatten]`",
            );
        }
        function
    }

    /// Returns the `#[cfg]` attributes of the function.
    pub(crate) fn conditions(&self) -> Vec<&Attribute> {
        self.item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
    }

    /// Returns the parameter whose fields are the arguments, if there is one.
    pub(crate) fn flattened(&self) -> Option<&Argument> {
        self.arguments().find(|argument| argument.flatten)
    }

    /// Returns the parameters that come from JSON.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(&**argument),
            Parameter::Context(_) => None,
        })
    }

    /// Returns how the function takes the context, or `None` if it does not.
    pub(crate) fn context(&self) -> Option<ContextKind> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Context(kind) => Some(*kind),
            Parameter::Argument(_) => None,
        })
    }
}

impl Returns {
    fn read(output: &ReturnType, problems: &mut Problems) -> Self {
        let ReturnType::Type(_, ty) = output else { return Self::Nothing };
        ResultTypes(problems).visit_type(ty);
        match peel(ty) {
            Type::Tuple(tuple) if tuple.elems.is_empty() => Self::Nothing,
            result if is(result, "Result") => Self::Type { whole: ty.clone(), held: type_arguments(result).cloned().collect() },
            _ => Self::Type { whole: ty.clone(), held: Vec::new() },
        }
    }

    /// Returns the type of the successful value, as far as it is visible in the code.
    pub(crate) fn value(&self) -> Option<&Type> {
        match self {
            Self::Nothing => None,
            Self::Type { whole, held } => Some(held.first().unwrap_or(whole)),
        }
    }
}

/// Reports functions that cannot be tools, regardless of their parameters.
fn check_kind(signature: &Signature, problems: &mut Problems) {
    if let Safety::Unsafe(token) = &signature.safety {
        problems.at(token, "a tool cannot be `unsafe`, because a model decides when to call it");
    }
    if let Some(abi) = &signature.abi {
        problems.at(abi, "a tool cannot be `extern`");
    }
    for parameter in &signature.generics.params {
        // The context can have a named lifetime; arguments cannot.
        if !matches!(parameter, GenericParam::Lifetime(_)) {
            problems.at(parameter, "a tool has one schema, so its function cannot be generic: name the type");
        }
    }
}

/// Reports a parameter that conflicts with an earlier one.
fn check_beside(before: &[Parameter], new: Option<&Parameter>, written: &syn::PatType, problems: &mut Problems) {
    match new {
        Some(Parameter::Context(_)) if before.iter().any(|known| matches!(known, Parameter::Context(_))) => {
            problems.at(written, "this function already takes the context");
        }
        Some(Parameter::Argument(new)) => {
            let taken = |known: &Parameter| matches!(known, Parameter::Argument(known) if known.name == new.name);
            if before.iter().any(taken) {
                problems.at(&written.pat, format!("another argument is already called `{}`", new.name));
            }
        }
        _ => {}
    }
}

/// Returns the types in the angle brackets at the end of a path.
pub(crate) fn type_arguments(ty: &Type) -> impl Iterator<Item = &Type> {
    let last = if let Type::Path(path) = ty { path.path.segments.last() } else { None };
    let arguments = last.and_then(|segment| match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    });
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

struct ResultTypes<'a>(&'a mut Problems);

impl<'ast> Visit<'ast> for ResultTypes<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static") {
            self.0.at(reference, format!("a result outlives the call and must be owned: {}", owned_instead(reference)));
        }
    }
}
