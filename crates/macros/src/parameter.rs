//! The parameters of a tool function: arguments that come from JSON, and the context that is handed in.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, Lifetime, Meta, Pat, PatType, Type, TypeImplTrait, TypeReference};

use crate::documentation;
use crate::problems::Problems;

/// One parameter of a tool function.
pub(crate) enum Parameter {
    /// It comes from the call's JSON.
    Argument(Box<Argument>),
    /// It is the call's context.
    Context(Passing),
}

/// One argument of a tool.
pub(crate) struct Argument {
    /// What the function calls it.
    pub(crate) ident: Ident,
    /// What the model calls it.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) description: Option<String>,
    /// The code of the value it has where the model leaves it out.
    pub(crate) default: Option<TokenStream>,
    /// Whether its fields are the arguments.
    pub(crate) flatten: bool,
    /// `#[schemars(...)]` as the author wrote it.
    pub(crate) schema: Vec<Attribute>,
}

/// How the context is handed in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    Reference,
    Value,
}

impl Parameter {
    /// Reads a parameter, and takes off it what only `#[tool]` understands. Nothing where it cannot be one.
    pub(crate) fn take(parameter: &mut PatType, problems: &mut Problems) -> Option<Self> {
        let ours = |attribute: &Attribute| ["doc", "default", "flatten", "schemars"].iter().any(|name| attribute.path().is_ident(name));
        let (ours, theirs) = std::mem::take(&mut parameter.attrs).into_iter().partition::<Vec<_>, _>(ours);
        parameter.attrs = theirs;
        for attribute in
            parameter.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr"))
        {
            problems.at(attribute, "a tool has the same parameters everywhere: put the condition on the function");
        }

        let defaults: Vec<_> = ours.iter().filter(|attribute| attribute.path().is_ident("default")).collect();
        if let Some(second) = defaults.get(1) {
            problems.at(second, "this parameter already has a default");
        }
        let default = defaults.first().copied();

        let flatten = ours.iter().find(|attribute| attribute.path().is_ident("flatten"));
        if let (Some(flatten), Some(_)) = (flatten, default) {
            problems.at(flatten, "the fields of this parameter are the arguments: give them defaults, with `#[serde(default)]`");
        }

        if let Some(passing) = context(&parameter.ty) {
            if let Some(default) = default {
                problems.at(default, "the context is handed in by the runtime and needs no default");
            }
            return Some(Self::Context(passing));
        }
        if let (Some(default), true) = (default, is(&parameter.ty, "Option")) {
            problems.at(default, "an `Option` that is left out is `None`: take away either the `Option` or the `#[default]`");
        }
        check_argument_type(&parameter.ty, problems);
        let ident = name_of(&parameter.pat, problems)?;
        let name = ident.unraw().to_string().trim_start_matches('_').to_owned();
        if name.is_empty() {
            problems.at(&ident, "the model needs a name to call this argument by");
        }
        Some(Self::Argument(Box::new(Argument {
            ident,
            name,
            ty: (*parameter.ty).clone(),
            description: problems.keep(documentation::text(&ours)).flatten(),
            default: default.and_then(|default| problems.keep(default_value(default))),
            flatten: flatten.is_some(),
            schema: ours.into_iter().filter(|attribute| attribute.path().is_ident("schemars")).collect(),
        })))
    }
}

/// Whether a type is written as a path that ends in this name.
pub(crate) fn is(ty: &Type, name: &str) -> bool {
    match peel(ty) {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == name),
        _ => false,
    }
}

/// The type without parentheses and without the invisible ones that `macro_rules!` leaves.
pub(crate) fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Paren(inner) => peel(&inner.elem),
        Type::Group(inner) => peel(&inner.elem),
        _ => ty,
    }
}

/// What an author may write instead of a borrowed type: the end of a sentence.
pub(crate) fn owned_instead(reference: &TypeReference) -> String {
    let known = [("str", "String"), ("Path", "PathBuf"), ("OsStr", "OsString"), ("CStr", "CString")];
    let inner = peel(&reference.elem);
    if let Some((_, owned)) = known.iter().find(|(borrowed, _)| is(inner, borrowed)) {
        return format!("use `{owned}`");
    }
    match inner {
        Type::Slice(_) => "use a `Vec`".to_owned(),
        Type::Path(path) if path.path.get_ident().is_some() => format!("use `{}`", path.to_token_stream()),
        _ => "use a type that owns it".to_owned(),
    }
}

fn context(ty: &Type) -> Option<Passing> {
    match peel(ty) {
        Type::Reference(reference) if reference.mutability.is_none() && is(&reference.elem, "CallContext") => Some(Passing::Reference),
        ty if is(ty, "CallContext") => Some(Passing::Value),
        _ => None,
    }
}

fn name_of(pattern: &Pat, problems: &mut Problems) -> Option<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => return Some(name.ident.clone()),
        Pat::Wild(_) => problems.at(pattern, "the model needs a name to call this argument by: write one, such as `_unused`"),
        _ => problems.at(pattern, "the model needs one name to call this argument by: name it here, and take it apart in the body"),
    }
    None
}

fn default_value(attribute: &Attribute) -> syn::Result<TokenStream> {
    let value = match &attribute.meta {
        Meta::Path(_) => return Ok(quote!(::core::default::Default::default())),
        Meta::List(list) if list.tokens.is_empty() => {
            return Err(syn::Error::new_spanned(
                attribute,
                "this default is empty: write `#[default(10)]`, or `#[default]` for the type's own",
            ));
        }
        Meta::List(_) => attribute.parse_args::<Expr>()?,
        Meta::NameValue(pair) => pair.value.clone(),
    };
    // A literal in quotes is a `&str`, while arguments own their text.
    let is_text = documentation::literal(&value).is_some();
    Ok(if is_text { quote!(::core::convert::From::from(#value)) } else { value.into_token_stream() })
}

fn check_argument_type(ty: &Type, problems: &mut Problems) {
    ArgumentTypes(problems).visit_type(ty);
}

struct ArgumentTypes<'a>(&'a mut Problems);

impl<'ast> Visit<'ast> for ArgumentTypes<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        let message = if is(&reference.elem, "CallContext") {
            "the context is shared and cannot be changed: use `&CallContext`".to_owned()
        } else {
            format!("arguments come from JSON and must be owned: {}", owned_instead(reference))
        };
        self.0.at(reference, message);
    }

    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.0.at(ty, "`impl` says nothing about the JSON to expect: name a type");
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.0.at(lifetime, "arguments come from JSON and must be owned: nothing lives long enough to borrow from");
        }
        visit::visit_lifetime(self, lifetime);
    }
}
