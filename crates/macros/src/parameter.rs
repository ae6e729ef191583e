//! Parses the parameters of a tool function: arguments from JSON, and the context.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, Lifetime, Meta, Pat, PatType, Type, TypeImplTrait, TypeReference};

use crate::documentation;
use crate::problems::Problems;

/// One parameter of a tool function.
pub(crate) enum Parameter {
    /// An argument from JSON.
    Argument(Box<Argument>),
    /// The context of the call.
    Context(ContextKind),
}

/// One argument of a tool.
pub(crate) struct Argument {
    /// The name of the parameter in the function.
    pub(crate) ident: Ident,
    /// The name of the argument for the model.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) description: Option<String>,
    /// The expression of the default value.
    pub(crate) default: Option<TokenStream>,
    /// Whether the fields of the parameter's type are the arguments.
    pub(crate) flatten: bool,
    /// The `#[schemars(...)]` attributes of the parameter.
    pub(crate) schema: Vec<Attribute>,
}

/// How the function takes the context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextKind {
    Reference,
    Value,
}

impl Parameter {
    /// Parses a parameter, and removes the attributes of `#[tool]` from it. Returns `None` if the parameter is not valid.
    pub(crate) fn take(parameter: &mut PatType, problems: &mut Problems) -> Option<Self> {
        let ours = |attribute: &Attribute| ["doc", "default", "flatten", "schemars"].iter().any(|name| attribute.path().is_ident(name));
        let (ours, theirs) = std::mem::take(&mut parameter.attrs).into_iter().partition::<Vec<_>, _>(ours);
        parameter.attrs = theirs;
        for attribute in
            parameter.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr"))
        {
            problems.at(attribute, "a parameter of a tool cannot be conditional: put the condition on the function");
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

        if let Some(kind) = context(&parameter.ty) {
            if let Some(default) = default {
                problems.at(default, "the runtime passes the context, so it needs no default");
            }
            return Some(Self::Context(kind));
        }
        if let (Some(default), true) = (default, is(&parameter.ty, "Option")) {
            problems.at(default, "an `Option` is `None` by default: remove either the `Option` or the `#[default]`");
        }
        ArgumentTypes(problems).visit_type(&parameter.ty);
        let ident = name_of(&parameter.pat, problems)?;
        let name = ident.unraw().to_string().trim_start_matches('_').to_owned();
        if name.is_empty() {
            problems.at(&ident, "the model needs a name for this argument");
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

/// Returns whether a type is a path that ends with `name`.
pub(crate) fn is(ty: &Type, name: &str) -> bool {
    match peel(ty) {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == name),
        _ => false,
    }
}

/// Returns the type without parentheses and without the invisible groups of `macro_rules!`.
pub(crate) fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Paren(inner) => peel(&inner.elem),
        Type::Group(inner) => peel(&inner.elem),
        _ => ty,
    }
}

/// Returns the end of a message that suggests an owned type instead of a borrowed one.
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

fn context(ty: &Type) -> Option<ContextKind> {
    match peel(ty) {
        Type::Reference(reference) if reference.mutability.is_none() && is(&reference.elem, "CallContext") => Some(ContextKind::Reference),
        ty if is(ty, "CallContext") => Some(ContextKind::Value),
        _ => None,
    }
}

fn name_of(pattern: &Pat, problems: &mut Problems) -> Option<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => return Some(name.ident.clone()),
        Pat::Wild(_) => problems.at(pattern, "the model needs a name for this argument, such as `_unused`"),
        _ => problems.at(pattern, "the model needs a name for this argument: name it here, and destructure it in the body"),
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
    // A string literal is a `&str`, but the type of an argument is owned.
    let is_text = documentation::literal(&value).is_some();
    Ok(if is_text { quote!(::core::convert::From::from(#value)) } else { value.into_token_stream() })
}

struct ArgumentTypes<'a>(&'a mut Problems);

impl<'ast> Visit<'ast> for ArgumentTypes<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        let message = if is(&reference.elem, "CallContext") {
            "the context is shared and immutable: use `&CallContext`".to_owned()
        } else {
            format!("arguments come from JSON and must be owned: {}", owned_instead(reference))
        };
        self.0.at(reference, message);
    }

    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.0.at(ty, "`impl Trait` has no schema: name a type");
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.0.at(lifetime, "arguments come from JSON and must be owned: they cannot borrow");
        }
        visit::visit_lifetime(self, lifetime);
    }
}
