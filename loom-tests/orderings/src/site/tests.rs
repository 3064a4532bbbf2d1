use super::*;

fn sites(text: &str) -> Vec<Site> {
    find(text, &[]).expect("it is Rust").sites
}

/// Function, operation, role and ordering of each site.
fn seen(text: &str) -> Vec<(String, String, Role, Order)> {
    sites(text).into_iter().map(|site| (site.function, site.operation, site.role, site.order)).collect()
}

fn one(function: &str, operation: &str, role: Role, order: Order) -> (String, String, Role, Order) {
    (function.to_owned(), operation.to_owned(), role, order)
}

#[test]
fn an_ordering_is_told_by_its_function_and_operation() {
    let text = r"
        impl<T> Flag<T> {
            fn raise(&self) {
                self.up[0].store(true, Ordering::Release);
            }
            fn is_up(&self) -> bool {
                Flag(self
                    .up[0]
                    .load(std::sync::atomic::Ordering::Acquire)).0
            }
        }
        fn both(flag: &AtomicBool) -> bool {
            std::sync::atomic::fence(Ordering::SeqCst);
            flag.swap(false, SeqCst)
        }";
    let expected = [
        one("Flag::raise", "self.up[0].store(true, Ordering::Release)", Role::Store, Order::Release),
        one(
            "Flag::is_up",
            "self.up[0].load(std::sync::atomic::Ordering::Acquire)",
            Role::Load,
            Order::Acquire,
        ),
        one("both", "std::sync::atomic::fence(Ordering::SeqCst)", Role::Fence, Order::SeqCst),
        one("both", "flag.swap(false, SeqCst)", Role::ReadModifyWrite, Order::SeqCst),
    ];
    assert_eq!(seen(text), expected);
}

#[test]
fn what_orders_nothing_is_no_site_nor_is_an_order_of_numbers() {
    let text = r"
        fn f(a: &AtomicU8) -> bool {
            a.load(Ordering::Relaxed).cmp(&1) == Ordering::Less
        }";
    assert_eq!(seen(text), []);
}

#[test]
fn a_compare_and_swap_has_two_also_where_they_have_names() {
    let text = r"
        fn named(a: &AtomicU8) -> bool {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            a.compare_exchange(0, 1, success, failure).is_ok()
        }
        fn plain(a: &AtomicU8) {
            while a.compare_exchange_weak(0, 1, Ordering::Release, Ordering::Relaxed).is_err() {}
            let _ = a.fetch_update(Ordering::Acquire, Ordering::Relaxed, |it| Some(it + 1));
        }";
    let named = "a.compare_exchange(0, 1, success, failure)";
    let expected = [
        one("named", named, Role::Success, Order::AcqRel),
        one("named", named, Role::Failure, Order::Acquire),
        one(
            "plain",
            "a.compare_exchange_weak(0, 1, Ordering::Release, Ordering::Relaxed)",
            Role::Success,
            Order::Release,
        ),
        one(
            "plain",
            "a.fetch_update(Ordering::Acquire, Ordering::Relaxed, |it| Some(it + 1))",
            Role::Success,
            Order::Acquire,
        ),
    ];
    assert_eq!(seen(text), expected);

    let weakened = sites(text)[0].weaken(text, Weaker::To("Release"));
    assert_eq!(weakened, text.replacen("Ordering::AcqRel", "Ordering::Release", 1));
}

#[test]
fn weakening_touches_nothing_else() {
    let text = "fn f() { é(); fence(Ordering::SeqCst); a.load(Ordering::Acquire); fence(Ordering::SeqCst); }";
    let sites = sites(text);
    let weakened = |site: usize, weaker| sites[site].weaken(text, weaker);
    assert_eq!(
        weakened(0, Weaker::To("AcqRel")),
        "fn f() { é(); fence(Ordering::AcqRel); a.load(Ordering::Acquire); fence(Ordering::SeqCst); }"
    );
    assert_eq!(
        weakened(1, Weaker::To("Relaxed")),
        "fn f() { é(); fence(Ordering::SeqCst); a.load(Ordering::Relaxed); fence(Ordering::SeqCst); }"
    );
    assert_eq!(
        weakened(2, Weaker::Removed),
        "fn f() { é(); fence(Ordering::SeqCst); a.load(Ordering::Acquire); (); }"
    );
}

#[test]
fn conditions_hold_for_what_they_stand_at() {
    let text = r#"
        #[cfg(not(loom))]
        mod native {
            fn f(&self) {
                #[cfg(unix)]
                self.a.load(Ordering::Acquire);
                self.b.load(Ordering::Acquire);
            }
            #[cfg(test)]
            mod tests;
        }
        fn g(&self) { self.c.load(Ordering::Acquire); }"#;
    let set = |name: &str| Condition::Set(name.to_owned());
    let not_loom = Condition::Not(Box::new(set("loom")));
    let contents = find(text, &[set("outer")]).expect("it is Rust");
    let conditions = contents.sites.into_iter().map(|site| site.conditions).collect::<Vec<_>>();
    let expected = [
        vec![set("outer"), not_loom.clone(), set("unix")],
        vec![set("outer"), not_loom.clone()],
        vec![set("outer")],
    ];
    assert_eq!(conditions, expected);
    let [module] = &contents.modules[..] else { panic!("one has a file of its own") };
    assert_eq!(module.path, ["native", "tests"]);
    assert_eq!(module.conditions, [set("outer"), not_loom, set("test")]);
}

#[test]
fn a_module_may_say_which_file_it_is() {
    let contents = find("#[cfg(test)]\n#[path = \"tests/a.rs\"]\nmod a;\nmod b;", &[]).expect("it is Rust");
    let files = contents.modules.into_iter().map(|module| module.file).collect::<Vec<_>>();
    assert_eq!(files, [Some("tests/a.rs".to_owned()), None]);
}

#[test]
fn macros_are_looked_into() {
    let text = "fn f(&self) { assert!(self.a.load(Ordering::Acquire), \"{}\", 1); }";
    assert_eq!(seen(text), [one("f", "self.a.load(Ordering::Acquire)", Role::Load, Order::Acquire)]);
}

#[test]
fn an_ordering_of_which_it_is_not_clear_what_it_is_for_is_refused() {
    let of_a_macro = "macro_rules! m { ($a:ident) => { $a.load(Ordering::Acquire) } }";
    let handed_on = "fn f(a: &A) {\n    look(a, Ordering::Acquire)\n}";
    assert_eq!(find(of_a_macro, &[]).unwrap_err(), "line 1: what operation is this ordering for?");
    assert_eq!(find(handed_on, &[]).unwrap_err(), "line 2: what operation is this ordering for?");
}
