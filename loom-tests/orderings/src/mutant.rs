//! The mutants of a crate: one for each way to weaken each ordering.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::condition::Condition;
use crate::error::Error;
use crate::site::{self, Module, Site};
use crate::weaker::{Role, Weaker};

/// The crate with one of its orderings weakened.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The file that differs: its path from the repository's root, with slashes.
    pub file: String,
    /// The ordering that is weakened.
    pub site: Site,
    /// What it becomes.
    pub weaker: Weaker,
    /// Its number among the mutants that would have the same name, from 1.
    pub number: usize,
}

impl Mutant {
    /// Returns its name: file, function, operation and change. The name stays the same as long as
    /// these do.
    #[must_use]
    pub fn name(&self) -> String {
        let number = if self.number > 1 { format!(" ({})", self.number) } else { String::new() };
        let Site { function, operation, .. } = &self.site;
        format!("{} {function}: {operation}: {}{number}", self.file, self.change())
    }

    /// Returns what is weakened to what.
    #[must_use]
    pub fn change(&self) -> String {
        let role = match self.site.role {
            Role::Success => "success ",
            Role::Failure => "failure ",
            Role::Load | Role::Store | Role::ReadModifyWrite | Role::Fence => "",
        };
        format!("{role}{} -> {}", self.site.order, self.weaker)
    }

    /// Returns whether the mutant differs from the crate when the names in `set` are set.
    #[must_use]
    pub fn is_built_with(&self, set: &BTreeSet<String>) -> bool {
        holds(&self.site.conditions, |name| Some(set.contains(name))) == Some(true)
    }
}

/// Finds all mutants of the crate whose root file is `first`, in the order of its files. Orderings
/// in code that only tests build are left out.
///
/// # Errors
///
/// If a file cannot be read or understood, or belongs to no module: no ordering may be missed.
pub fn all(root: &Path, first: &Path) -> Result<Vec<Mutant>, Error> {
    let mut unseen = rust_files(&root.join(first.parent().unwrap_or(first)))?;
    let mut found = BTreeMap::new();
    let mut open = vec![(root.join(first), Vec::new())];
    while let Some((file, conditions)) = open.pop() {
        unseen.remove(&file);
        let text = fs::read_to_string(&file).map_err(Error::file(&file))?;
        let unclear = |what| Error::Unclear { file: file.clone(), what };
        let contents = site::find(&text, &conditions).map_err(unclear)?;
        let modules = contents.modules.into_iter();
        open.extend(modules.map(|module| (file_of(&module, &file), module.conditions)));
        found.insert(relative(root, &file), contents.sites);
    }
    match unseen.pop_first() {
        None => Ok(numbered(found)),
        Some(file) => Err(Error::Unclear { file, what: "which module is this?".to_owned() }),
    }
}

fn numbered(found: BTreeMap<String, Vec<Site>>) -> Vec<Mutant> {
    let mut names = BTreeMap::<_, usize>::new();
    let mut mutants = Vec::new();
    for (file, sites) in found {
        for site in sites.into_iter().filter(|site| !is_of_tests(site)) {
            for &weaker in site.order.weaker(site.role) {
                let mut mutant = Mutant { file: file.clone(), site: site.clone(), weaker, number: 1 };
                let same = names.entry(mutant.name()).or_default();
                *same += 1;
                mutant.number = *same;
                mutants.push(mutant);
            }
        }
    }
    mutants
}

fn is_of_tests(site: &Site) -> bool {
    holds(&site.conditions, |name| (name == "test").then_some(false)) == Some(false)
}

fn holds(conditions: &[Condition], known: impl Fn(&str) -> Option<bool>) -> Option<bool> {
    Condition::All(conditions.to_vec()).holds(&known)
}

/// The file of a module that is declared in `parent`.
fn file_of(module: &Module, parent: &Path) -> PathBuf {
    if let Some(file) = &module.file {
        return parent.with_file_name(file);
    }
    let is_directory = ["lib.rs", "mod.rs"].iter().any(|name| parent.ends_with(name));
    let mut path = if is_directory { parent.with_file_name("") } else { parent.with_extension("") };
    path.extend(&module.path);
    let own = path.join("mod.rs");
    if own.exists() { own } else { path.with_extension("rs") }
}

fn rust_files(directory: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(directory).map_err(Error::file(directory))? {
        let path = entry.map_err(Error::file(directory))?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path);
        }
    }
    Ok(files)
}

/// The file's path from the root, with slashes on every system.
fn relative(root: &Path, file: &Path) -> String {
    let path = file.strip_prefix(root).unwrap_or(file);
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(text: &str) -> Vec<Site> {
        site::find(text, &[]).expect("it is Rust").sites
    }

    #[test]
    fn each_mutant_has_a_name_of_its_own() {
        let text = "fn f() { fence(SeqCst); fence(SeqCst); }";
        let mutants = numbered(BTreeMap::from([("src/a.rs".to_owned(), site(text))]));
        let names = mutants.iter().map(Mutant::name).collect::<Vec<_>>();
        let expected = [
            "src/a.rs f: fence(SeqCst): SeqCst -> AcqRel",
            "src/a.rs f: fence(SeqCst): SeqCst -> removed",
            "src/a.rs f: fence(SeqCst): SeqCst -> AcqRel (2)",
            "src/a.rs f: fence(SeqCst): SeqCst -> removed (2)",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn tests_are_left_out_and_other_conditions_say_who_builds_it() {
        let text = "#[cfg(all(test, unix))] fn t() { fence(SeqCst); }
                    #[cfg(not(loom))] fn f() { a.load(Acquire); }";
        let mutants = numbered(BTreeMap::from([("src/a.rs".to_owned(), site(text))]));
        let [mutant] = &mutants[..] else { panic!("one is left: {mutants:?}") };
        assert_eq!(mutant.site.function, "f");
        assert!(mutant.is_built_with(&BTreeSet::new()));
        assert!(!mutant.is_built_with(&BTreeSet::from(["loom".to_owned()])));
    }
}
