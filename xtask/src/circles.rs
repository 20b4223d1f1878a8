//! No circles of modules within a crate: of two that stand side by side, at most one uses the other, over any number
//! of steps.
//!
//! It reads imports and paths as text, without the tests. A name that a module imports and passes on counts where it
//! is defined. What a folder's own file takes of the files in it, and they of it, is one thing and no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::root;

/// A path of names, from the crate on.
type Names = Vec<String>;

/// Checks every crate and prints the circles.
pub(crate) fn run() -> Result<()> {
    let mut problems = Vec::new();
    let mut modules = 0;
    for folder in fs::read_dir(root().join("crates")).context("cannot list crates")? {
        let folder = folder?;
        let name = folder.file_name().to_string_lossy().into_owned();
        let all = Modules::of_crate(&folder.path().join("src"))?;
        modules += all.code.len();
        let told = |Circle { folder, modules }| {
            format!("{name}/{folder}: {modules:?} use each other in a circle")
        };
        problems.extend(all.circles().into_iter().map(told));
    }
    problems.sort();
    problems.iter().for_each(|problem| println!("{problem}"));
    if !problems.is_empty() {
        bail!("{} circles of modules: move what both use into a third", problems.len());
    }
    println!("layers: {modules} modules, no circle");
    Ok(())
}

/// Modules in one folder that use each other.
#[derive(Debug, PartialEq, Eq)]
struct Circle {
    folder: String,
    modules: Names,
}

/// The modules of a crate.
struct Modules {
    /// Their code without tests and comments.
    code: BTreeMap<Names, String>,
}

impl Modules {
    fn of_crate(src: &Path) -> Result<Self> {
        let mut texts = BTreeMap::new();
        collect(src, &mut Vec::new(), &mut texts)?;
        Ok(Self::of_texts(texts))
    }

    fn of_texts(mut texts: BTreeMap<Names, String>) -> Self {
        let tests: Vec<Names> = texts
            .iter()
            .flat_map(|(module, text)| {
                test_modules(text).into_iter().map(|name| [&module[..], &[name]].concat())
            })
            .collect();
        texts.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        let code = texts.into_iter().map(|(module, text)| (module, without_tests(&text))).collect();
        Self { code }
    }

    /// Of each folder the modules in it that use each other.
    fn circles(&self) -> Vec<Circle> {
        let mut uses: BTreeMap<Names, BTreeMap<Names, BTreeSet<Names>>> = BTreeMap::new();
        let imports: BTreeMap<_, _> =
            self.code.keys().map(|module| (module, self.imports(module))).collect();
        for module in self.code.keys() {
            for path in self.used(module) {
                let to = self.resolved(&path, &imports, 0);
                let common = module.iter().zip(&to).take_while(|(a, b)| a == b).count();
                // One lies in the other's folder.
                if common < module.len() && common < to.len() {
                    let side = |path: &Names| path[..=common].to_vec();
                    let folder = uses.entry(module[..common].to_vec()).or_default();
                    folder.entry(side(module)).or_default().insert(side(&to));
                }
            }
        }
        uses.iter().flat_map(|(folder, uses)| circles_of(folder, uses)).collect()
    }

    /// The paths that a module uses, from the crate on; those that it only passes on are none.
    fn used(&self, module: &Names) -> BTreeSet<Names> {
        self.paths(module).filter(|path| !path.is_passed_on).map(|path| path.names).collect()
    }

    /// The names that a module imports, and what they are.
    fn imports(&self, module: &Names) -> BTreeMap<String, Names> {
        let imported = self.paths(module).filter(|path| path.is_import);
        imported.filter_map(|path| Some((path.known_as?, path.names))).collect()
    }

    fn paths<'a>(&'a self, module: &'a Names) -> impl Iterator<Item = UsedPath> + 'a {
        let code = &self.code[module];
        let starts = path_starts(code);
        starts.into_iter().flat_map(move |at| self.paths_at(module, code, at))
    }

    /// The paths that begin at one place: several, where braces follow.
    fn paths_at(&self, module: &Names, code: &str, at: usize) -> Vec<UsedPath> {
        let mut reader = Reader { rest: &code[at..] };
        let first = reader.word();
        let is_child =
            || self.code.contains_key(&[&module[..], std::slice::from_ref(&first)].concat());
        if !matches!(&first[..], "crate" | "super" | "self") && !is_child() {
            return Vec::new();
        }
        let before = code[..at].trim_end();
        let is_import = before.ends_with("use");
        let is_passed_on = is_import && {
            let line = before.rsplit(['\n', ';', '}']).next().unwrap_or_default();
            line.trim_start().starts_with("pub")
        };
        let mut reader = Reader { rest: &code[at..] };
        let paths = reader.tree().into_iter();
        paths
            .map(|(names, alias)| {
                let mut names = absolute(module, names);
                if names.last().is_some_and(|last| last == "self") {
                    names.pop();
                }
                let known_as = alias.or_else(|| names.last().cloned());
                UsedPath { names, known_as, is_import, is_passed_on }
            })
            .collect()
    }

    /// The module in which a path's name is defined.
    fn resolved(
        &self,
        path: &[String],
        imports: &BTreeMap<&Names, BTreeMap<String, Names>>,
        depth: u8,
    ) -> Names {
        const DEPTH_MAX: u8 = 8;
        let module = (0..=path.len()).rev().map(|len| path[..len].to_vec());
        let Some(module) = module.into_iter().find(|names| self.code.contains_key(names)) else {
            return Vec::new();
        };
        let passed_on = path.get(module.len()).and_then(|name| imports.get(&module)?.get(name));
        match passed_on.filter(|to| depth < DEPTH_MAX && to[..] != *path) {
            Some(to) => {
                let rest = path.get(module.len() + 1..).unwrap_or_default();
                self.resolved(&[to, rest].concat(), imports, depth + 1)
            }
            None => module,
        }
    }
}

/// A path that code has.
struct UsedPath {
    names: Names,
    /// What an import calls it.
    known_as: Option<String>,
    is_import: bool,
    is_passed_on: bool,
}

/// Reads names and signs.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn word(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let len = self.rest.find(|c| !is_in_name(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        word.to_owned()
    }

    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Paths with what they are called by `as`.
    fn tree(&mut self) -> Vec<(Names, Option<String>)> {
        if self.takes("{") {
            let mut all = Vec::new();
            while !self.takes("}") && !self.rest.trim_start().is_empty() {
                let before = self.rest.len();
                all.extend(self.tree());
                self.takes(",");
                if self.rest.len() == before {
                    break;
                }
            }
            return all;
        }
        if self.takes("*") {
            return Vec::new();
        }
        let word = self.word();
        if word.is_empty() {
            return Vec::new();
        }
        let is_followed = self.rest.starts_with("::")
            && self.rest[2..].starts_with(|c| is_in_name(c) || c == '{' || c == '*');
        if is_followed && self.takes("::") {
            let below = self.tree().into_iter();
            return below
                .map(|(names, alias)| ([std::slice::from_ref(&word), &names[..]].concat(), alias))
                .collect();
        }
        let alias = self.rest.starts_with(" as ").then(|| {
            self.takes("as");
            self.word()
        });
        vec![(vec![word], alias)]
    }
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where paths of several names begin.
fn path_starts(code: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    for (at, _) in code.match_indices("::") {
        let front = code[..at].trim_end_matches(is_in_name);
        if front.len() < at && !front.ends_with("::") {
            starts.push(front.len());
        }
    }
    starts
}

/// A path from the crate on.
fn absolute(module: &Names, names: Names) -> Names {
    let mut base = module.clone();
    let mut rest = &names[..];
    while let [first, below @ ..] = rest {
        match &first[..] {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" if names.first() == Some(first) && rest.len() == names.len() => {}
            _ => break,
        }
        rest = below;
    }
    [&base[..], rest].concat()
}

fn collect(folder: &Path, names: &mut Names, texts: &mut BTreeMap<Names, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {folder:?}"))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            names.push(stem);
            collect(&path, names, texts)?;
            names.pop();
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
            let own = !matches!(&stem[..], "lib" | "main" | "mod");
            let module = names.iter().cloned().chain(own.then_some(stem)).collect();
            texts.insert(module, text);
        }
    }
    Ok(())
}

const FOR_TESTS: &str = "#[cfg(test)]";

/// The names of modules in files of their own that are for tests.
fn test_modules(text: &str) -> Vec<String> {
    let behind = text.split(FOR_TESTS).skip(1);
    behind
        .filter_map(|behind| {
            let statement = behind.split(['{', ';']).next()?;
            let is_file = behind[statement.len()..].starts_with(';');
            let name = statement.rsplit_once("mod ")?.1.trim();
            is_file.then(|| name.to_owned())
        })
        .collect()
}

/// Code without comments, and without what is for tests, which is at the end or a single statement.
pub(crate) fn without_tests(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut parts = code.split(FOR_TESTS);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['{', ';']).unwrap_or(part.len());
        if part[end..].starts_with('{') && part[..end].contains("mod ") {
            break;
        }
        out.push_str(part.get(end + 1..).unwrap_or_default());
    }
    out
}

fn circles_of(folder: &Names, uses: &BTreeMap<Names, BTreeSet<Names>>) -> Vec<Circle> {
    let reached: BTreeMap<_, _> =
        uses.keys().map(|module| (module, reached_from(module, uses))).collect();
    let mut done = BTreeSet::new();
    let mut circles = Vec::new();
    for module in uses.keys() {
        let is_mutual =
            |other: &&Names| reached.get(*other).is_some_and(|all| all.contains(module));
        let others: BTreeSet<&Names> = reached[module].iter().filter(is_mutual).collect();
        if !others.contains(module) || !done.insert(module) {
            continue;
        }
        done.extend(&others);
        let modules = others.iter().filter_map(|other| other.last().cloned()).collect();
        circles.push(Circle { folder: folder.join("/"), modules });
    }
    circles
}

fn reached_from(module: &Names, uses: &BTreeMap<Names, BTreeSet<Names>>) -> BTreeSet<Names> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![module]);
    while let Some(from) = open.pop() {
        for to in uses.get(from).into_iter().flatten() {
            if reached.insert(to.clone()) {
                open.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of files by their modules, `/` for the crate's own.
    fn circles(files: &[(&str, &str)]) -> Vec<Circle> {
        let names = |module: &str| -> Names {
            module.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let texts = files.iter().map(|(module, text)| (names(module), (*text).to_owned()));
        Modules::of_texts(texts.collect()).circles()
    }

    fn circle(folder: &str, modules: &[&str]) -> Circle {
        let modules = modules.iter().map(|name| (*name).to_owned()).collect();
        Circle { folder: folder.into(), modules }
    }

    #[test]
    fn a_circle_is_found_over_any_number_of_steps_and_through_what_is_passed_on() {
        let root = "mod a;\nmod b;\nmod c;\npub use b::B;\n";
        let step = ("c", "fn c() { crate::a::a() }");
        let files = [("/", root), ("a", "use crate::B;"), ("b", "use super::{c::{c, D}};"), step];
        assert_eq!(circles(&files), [circle("", &["a", "b", "c"])]);
        let cut = [("/", root), ("a", ""), ("b", "use super::c;"), step];
        assert_eq!(circles(&cut), []);
    }

    #[test]
    fn folders_use_each_other_by_any_file_in_them_and_a_folder_s_own_file_is_one_with_them() {
        let files = [
            ("x", "mod one;\npub(crate) use one::One;\nuse crate::X;"),
            ("x/one", "use super::X;\nuse crate::y::Two;"),
            ("y", "mod two;\npub(crate) use two::Two;"),
            ("y/two", "use crate::x::One;"),
            ("/", "mod x;\nmod y;\npub struct X;\nfn f() { x::f() }"),
        ];
        assert_eq!(circles(&files), [circle("", &["x", "y"])]);
    }

    #[test]
    fn tests_and_comments_count_for_nothing() {
        let files = [
            (
                "a.rs",
                "//! As [`crate::b`].\n#[cfg(test)]\nuse crate::b;\n#[cfg(test)]\nmod tests { use crate::b::x; }",
            ),
            ("b", "use crate::a::y;"),
            ("/", "mod a;\nmod b;\n#[cfg(test)]\nmod world;"),
            ("world", "use crate::b;"),
        ];
        assert_eq!(circles(&files), []);
    }

    #[test]
    fn the_workspace_has_no_circle() {
        run().unwrap();
    }
}
