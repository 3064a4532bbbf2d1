//! Conditions of `#[cfg(...)]`, and their evaluation.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// The content of a `#[cfg(...)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A name, or `name="value"`.
    Set(String),
    /// `all(...)`
    All(Vec<Condition>),
    /// `any(...)`
    Any(Vec<Condition>),
    /// `not(...)`
    Not(Box<Condition>),
}

impl Condition {
    /// Returns the condition that an attribute sets, if it sets one.
    #[must_use]
    pub fn of(attribute: &Attribute) -> Option<Self> {
        let list = attribute.meta.require_list().ok()?;
        list.path.is_ident("cfg").then(|| list.parse_args().ok().as_ref().and_then(Self::read))?
    }

    fn read(meta: &Meta) -> Option<Self> {
        let Meta::List(list) = meta else {
            return Some(Self::Set(name(meta)?));
        };
        let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
        let mut inner = inner.iter().map(Self::read).collect::<Option<Vec<_>>>()?;
        match list.path.get_ident()?.to_string().as_str() {
            "all" => Some(Self::All(inner)),
            "any" => Some(Self::Any(inner)),
            "not" => Some(Self::Not(Box::new(inner.pop()?))),
            _ => None,
        }
    }

    /// Returns whether the condition holds, as far as the known names decide it.
    #[must_use]
    pub fn holds(&self, known: &impl Fn(&str) -> Option<bool>) -> Option<bool> {
        match self {
            Self::Set(name) => known(name),
            Self::All(inner) => decided_by(false, inner, known),
            Self::Any(inner) => decided_by(true, inner, known),
            Self::Not(inner) => inner.holds(known).map(|holds| !holds),
        }
    }
}

/// If one of `inner` has the value `decisive`, that value is the result; otherwise all must be
/// known.
fn decided_by(decisive: bool, inner: &[Condition], known: &impl Fn(&str) -> Option<bool>) -> Option<bool> {
    let mut inner = inner.iter().map(|condition| condition.holds(known));
    let unknown = inner.try_fold(false, |unknown, holds| match holds {
        Some(holds) if holds == decisive => Err(()),
        holds => Ok(unknown || holds.is_none()),
    });
    match unknown {
        Err(()) => Some(decisive),
        Ok(true) => None,
        Ok(false) => Some(!decisive),
    }
}

/// In the syntax of `rustc --print cfg`.
fn name(meta: &Meta) -> Option<String> {
    let name = meta.path().get_ident()?.to_string();
    let Meta::NameValue(pair) = meta else { return Some(name) };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(value), .. }) = &pair.value else { return None };
    Some(format!("{name}={:?}", value.value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, set: &[&str], unknown: &[&str]) -> Option<bool> {
        let item: syn::ItemMod = syn::parse_str(&format!("#[cfg({text})] mod m;")).expect("it is a module");
        let condition = Condition::of(&item.attrs[0]).expect("it is a condition");
        condition.holds(&|name| (!unknown.contains(&name)).then(|| set.contains(&name)))
    }

    #[test]
    fn conditions_are_read_as_the_compiler_reads_them() {
        assert_eq!(holds("loom", &["loom"], &[]), Some(true));
        assert_eq!(holds("not(loom)", &["loom"], &[]), Some(false));
        assert_eq!(holds(r#"feature = "epoch""#, &[r#"feature="epoch""#], &[]), Some(true));
        assert_eq!(holds(r#"any(not(loom), feature = "epoch")"#, &["loom"], &[]), Some(false));
        assert_eq!(holds("all(unix, loom)", &["unix", "loom"], &[]), Some(true));
    }

    #[test]
    fn what_is_not_known_matters_only_where_nothing_else_decides() {
        assert_eq!(holds("all(test, not(loom))", &[], &["loom"]), Some(false));
        assert_eq!(holds("any(test, loom)", &[], &["loom"]), None);
        assert_eq!(holds("not(all(test, loom))", &[], &["loom"]), Some(true));
    }
}
