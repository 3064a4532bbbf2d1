//! The places of orderings, found in a file's syntax tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Pat, Token};

use crate::condition::Condition;
use crate::weaker::{Order, Role, Weaker};

/// An ordering stronger than `Relaxed`, and the operation whose argument it is.
#[derive(Clone, Debug)]
pub struct Site {
    /// `Type::function`
    pub function: String,
    /// The source text of the operation, on one line.
    pub operation: String,
    /// The ordering's role in the operation.
    pub role: Role,
    /// The ordering.
    pub order: Order,
    /// All of these must hold for the operation to be built.
    pub conditions: Vec<Condition>,
    /// The position of the ordering's name.
    name: Range<usize>,
    /// The position of the operation.
    whole: Range<usize>,
}

impl Site {
    /// Returns the file's text, weakened at this place.
    #[must_use]
    pub fn weaken(&self, text: &str, weaker: Weaker) -> String {
        let mut text = text.to_owned();
        match weaker {
            Weaker::To(name) => text.replace_range(self.name.clone(), name),
            Weaker::Removed => text.replace_range(self.whole.clone(), "()"),
        }
        text
    }
}

/// A `mod name;`, and the conditions under which it is built.
#[derive(Debug)]
pub struct Module {
    /// Its name, preceded by the names of the enclosing modules of the same file.
    pub path: Vec<String>,
    /// Its file, as its attribute `path` gives it.
    pub file: Option<String>,
    /// All of these must hold.
    pub conditions: Vec<Condition>,
}

/// The content of a file.
#[derive(Debug, Default)]
pub struct Contents {
    /// Its orderings, in file order.
    pub sites: Vec<Site>,
    /// Its modules that have their own files.
    pub modules: Vec<Module>,
}

/// Finds the orderings and modules in a file's text; `conditions` must hold for the file to be
/// built.
///
/// # Errors
///
/// If the text is not Rust, or contains an ordering (in a macro, for example) whose operation is
/// not clear: no ordering may be missed.
pub fn find(text: &str, conditions: &[Condition]) -> Result<Contents, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut finder = Finder { text, conditions: conditions.to_vec(), ..Finder::default() };
    finder.visit_file(&file);
    match finder.seen.difference(&finder.understood).next() {
        None => Ok(finder.contents),
        Some(&at) => {
            let line = text[..at].lines().count();
            Err(format!("line {line}: what operation is this ordering for?"))
        }
    }
}

#[derive(Default)]
struct Finder<'t> {
    text: &'t str,
    contents: Contents,
    conditions: Vec<Condition>,
    modules: Vec<String>,
    owners: Vec<String>,
    /// Orderings that have a name in the present function.
    named: BTreeMap<String, Named>,
    seen: BTreeSet<usize>,
    understood: BTreeSet<usize>,
}

#[derive(Clone)]
struct Named {
    order: Order,
    at: Range<usize>,
}

impl Finder<'_> {
    /// Records the operation's orderings.
    fn operation(
        &mut self,
        whole: Range<usize>,
        arguments: &Punctuated<Expr, Token![,]>,
        roles: &[(usize, Role)],
    ) {
        for &(argument, role) in roles {
            let Some(Named { order, at }) = arguments.get(argument).and_then(|it| self.ordering(it)) else {
                continue;
            };
            // An ordering with a name can be the argument of several operations.
            if self.understood.insert(at.start) {
                let operation = on_one_line(&self.text[whole.clone()]);
                let (function, conditions) = (self.owners.join("::"), self.conditions.clone());
                let whole = whole.clone();
                self.contents.sites.push(Site {
                    function,
                    operation,
                    role,
                    order,
                    conditions,
                    name: at,
                    whole,
                });
            }
        }
    }

    fn ordering(&self, expression: &Expr) -> Option<Named> {
        let Expr::Path(path) = expression else { return None };
        let named = path.path.get_ident().and_then(|name| self.named.get(&name.to_string()));
        named.cloned().or_else(|| written_out(&path.path))
    }

    fn bind(&mut self, pattern: &Pat, value: &Expr) {
        match (pattern, value) {
            (Pat::Tuple(patterns), Expr::Tuple(values)) => {
                patterns
                    .elems
                    .iter()
                    .zip(&values.elems)
                    .for_each(|(pattern, value)| self.bind(pattern, value));
            }
            (Pat::Ident(name), value) => {
                if let Some(ordering) = self.ordering(value) {
                    self.named.insert(name.ident.to_string(), ordering);
                }
            }
            _ => {}
        }
    }

    /// Visits the content of `owner`.
    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        self.owners.push(owner);
        visit(self);
        self.owners.pop();
    }

    fn function(&mut self, signature: &syn::Signature, visit: impl FnOnce(&mut Self)) {
        let around = std::mem::take(&mut self.named);
        self.within(signature.ident.to_string(), visit);
        self.named = around;
    }

    /// Visits an element that may have attributes; its conditions hold only within it.
    fn with_attributes(&mut self, visit: impl FnOnce(&mut Self)) {
        let around = self.conditions.len();
        visit(self);
        self.conditions.truncate(around);
    }

    /// Records the orderings in tokens that are not parsed further.
    fn scan(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Ident(name) if Order::named(&name.to_string()).is_some() => {
                    self.seen.insert(name.span().byte_range().start);
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    // Attributes are visited before the rest of their element.
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        self.conditions.extend(Condition::of(attribute));
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.with_attributes(|this| visit::visit_item(this, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        self.with_attributes(|this| visit::visit_impl_item(this, item));
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        self.with_attributes(|this| visit::visit_trait_item(this, item));
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        self.with_attributes(|this| visit::visit_stmt(this, statement));
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        self.with_attributes(|this| visit::visit_expr(this, expression));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.with_attributes(|this| visit::visit_field(this, field));
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.with_attributes(|this| visit::visit_variant(this, variant));
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        self.with_attributes(|this| visit::visit_field_value(this, field));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.with_attributes(|this| visit::visit_arm(this, arm));
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.modules.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        if module.content.is_none() {
            let (path, conditions) = (self.modules.clone(), self.conditions.clone());
            let file = module.attrs.iter().find_map(given_path);
            self.contents.modules.push(Module { path, file, conditions });
        }
        self.modules.pop();
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.within(type_name(&item.self_ty), |this| visit::visit_item_impl(this, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(item.ident.to_string(), |this| visit::visit_item_trait(this, item));
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, |this| visit::visit_item_fn(this, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig, |this| visit::visit_impl_item_fn(this, function));
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.function(&function.sig, |this| visit::visit_trait_item_fn(this, function));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        if let Some(init) = &local.init {
            self.bind(&local.pat, &init.expr);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        let roles = Role::of_method(&call.method.to_string());
        self.operation(call.span().byte_range(), &call.args, roles);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        visit::visit_expr_call(self, call);
        let Expr::Path(function) = &*call.func else { return };
        if function
            .path
            .segments
            .last()
            .is_some_and(|name| name.ident == "fence" || name.ident == "compiler_fence")
        {
            self.operation(call.span().byte_range(), &call.args, &[(0, Role::Fence)]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.seen.extend(written_out(path).map(|ordering| ordering.at.start));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        match invocation.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            Ok(arguments) => arguments.iter().for_each(|argument| Visit::visit_expr(self, argument)),
            Err(_) => self.scan(invocation.tokens.clone()),
        }
    }
}

/// `Ordering::Acquire` and the like, or `Acquire` alone.
fn written_out(path: &syn::Path) -> Option<Named> {
    let mut backwards = path.segments.iter().rev();
    let name = &backwards.next()?.ident;
    let order = Order::named(&name.to_string())?;
    let at = || name.span().byte_range();
    backwards.next().is_none_or(|segment| segment.ident == "Ordering").then(|| Named { order, at: at() })
}

fn type_name(of: &syn::Type) -> String {
    let syn::Type::Path(path) = of else { return "_".to_owned() };
    path.path.segments.last().map_or_else(|| "_".to_owned(), |segment| segment.ident.to_string())
}

fn given_path(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(file), .. }) if pair.path.is_ident("path") => {
            Some(file.value())
        }
        _ => None,
    }
}

fn on_one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace(" .", ".").replace("( ", "(").replace(", )", ")")
}

#[cfg(test)]
mod tests;
