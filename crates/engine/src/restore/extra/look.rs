//! What is in something that is only in the target, and whether all of it may go.

use std::hash::RandomState;
use std::io;
use std::path::PathBuf;

use holdall_sys::{FileKind, Name, Stat, TargetDir};

use super::guard::{Named, OWN, guarded_by};
use super::{DeleteIn, Extra, Extras, MOST, joined};
use crate::restore::Selected;
use crate::{EngineError, Run};

/// Folders in each other that are entered; what lies deeper stays.
const DEPTH_MOST: usize = 200;
/// What a file system puts into its top folder.
const LOST_AND_FOUND: &[u8] = b"lost+found";

pub(super) const MOUNTED: &str = "it is another file system";
const OF_FILE_SYSTEM: &str = "it is its file system's own";
const DEEP: &str = "it lies too deep";

/// Looks at things.
pub(super) struct Look<'a> {
    within: &'a DeleteIn<'a>,
    run: &'a Run,
    named: Named,
    items: u64,
    pub(super) found: Extras,
    /// For numbers that stand for names.
    pub(super) key: RandomState,
}

/// What may go of one thing.
enum Looked {
    /// All of it; it is noted as it was.
    Whole(Extra),
    /// So much of what is in it.
    Parts(Vec<Extra>),
}

impl<'a> Look<'a> {
    /// # Errors
    /// [`EngineError::Path`] for a target in which nothing is ever deleted.
    pub(super) fn new(within: &'a DeleteIn<'a>, run: &'a Run) -> Result<Self, EngineError> {
        let named = Named::of(within.keep);
        within.check_target(&named)?;
        let (found, key) = (Extras::default(), RandomState::new());
        Ok(Self { within, run, named, items: 0, found, key })
    }

    /// Why a folder with these names stays, with all that is in it.
    pub(super) fn why_it_stays<'n>(
        &self,
        below: &[u8],
        names: impl Iterator<Item = &'n [u8]>,
    ) -> Option<&'static str> {
        let is_named = || self.named.has(&self.within.shown(below)).then_some(OWN);
        guarded_by(names).or_else(is_named)
    }

    /// Whether something is to be as the snapshot says: not what the selection leaves out, nor what is only on the way to
    /// what it takes.
    pub(super) fn is_chosen(&self, path: &[u8], is_dir: bool) -> bool {
        let select = self.within.options.select.as_ref();
        select.is_none_or(|select| select(path, is_dir) == Selected::Yes)
    }

    /// Notes what of `name` in `dir` is to go, and what stays.
    ///
    /// # Errors
    /// [`EngineError::Path`] if there is too much; [`EngineError::Interrupted`]; [`EngineError::Io`] if a folder cannot be
    /// read.
    pub(super) fn note(
        &mut self,
        (dir, of_dir): (&TargetDir, &Stat),
        name: Name<'_>,
        paths: (Vec<u8>, Vec<u8>),
    ) -> Result<(), EngineError> {
        match self.at((dir, of_dir), name, paths, 0)? {
            Looked::Whole(extra) => self.found.extras.push(extra),
            Looked::Parts(parts) => self.found.extras.extend(parts),
        }
        Ok(())
    }

    fn at(
        &mut self,
        (dir, of_dir): (&TargetDir, &Stat),
        name: Name<'_>,
        (below, path): (Vec<u8>, Vec<u8>),
        depth: usize,
    ) -> Result<Looked, EngineError> {
        self.run.check()?;
        self.count()?;
        // What is gone by now is nobody's business.
        let Ok(there) = dir.as_dir().stat(name) else { return Ok(Looked::nothing()) };
        let is_dir = there.kind == FileKind::Dir;
        if !self.is_chosen(&path, is_dir) {
            return Ok(Looked::nothing());
        }
        let stays = match () {
            () if !there.is_on_mount_of(of_dir) => Some(MOUNTED),
            () if depth == DEPTH_MOST => Some(DEEP),
            () if name.as_bytes() == LOST_AND_FOUND => Some(OF_FILE_SYSTEM),
            () if !is_dir => self.why_it_stays(&below, std::iter::empty()),
            () => None,
        };
        if let Some(why) = stays {
            return Ok(self.keeps(below, why));
        }
        match is_dir {
            false => Ok(self.whole(Extra { below, is_dir }, &there)),
            true => self.folder(dir, name, (below, path), &there, depth),
        }
    }

    fn folder(
        &mut self,
        dir: &TargetDir,
        name: Name<'_>,
        (below, path): (Vec<u8>, Vec<u8>),
        there: &Stat,
        depth: usize,
    ) -> Result<Looked, EngineError> {
        let opened = dir.open_dir(name).and_then(|dir| Ok((dir.as_dir().entries()?, dir)));
        let (names, dir) = opened.map_err(|error| self.cannot_list(&below, error))?;
        let bytes = names.iter().map(|one| one.name().as_bytes());
        if let Some(why) = self.why_it_stays(&below, bytes) {
            return Ok(self.keeps(below, why));
        }
        let (mut all_go, mut parts) = (true, Vec::new());
        for entry in names.iter() {
            let name = entry.name();
            let path = [&path[..], b"/", name.as_bytes()].concat();
            let paths = (joined(&below, name.as_bytes()), path);
            match self.at((&dir, there), name, paths, depth + 1)? {
                Looked::Whole(extra) => parts.push(extra),
                Looked::Parts(some) => {
                    all_go = false;
                    parts.extend(some);
                }
            }
        }
        Ok(match all_go {
            true => self.whole(Extra { below, is_dir: true }, there),
            false => Looked::Parts(parts),
        })
    }

    fn whole(&mut self, extra: Extra, there: &Stat) -> Looked {
        self.found.listed.add(&extra.below, there);
        Looked::Whole(extra)
    }

    fn keeps(&mut self, below: Vec<u8>, why: &'static str) -> Looked {
        self.found.kept.push((below, why));
        Looked::nothing()
    }

    fn cannot_list(&self, below: &[u8], error: io::Error) -> EngineError {
        let path: PathBuf = self.within.shown(below);
        EngineError::io(format!("listing {}", path.display()), error)
    }

    fn count(&mut self) -> Result<(), EngineError> {
        self.items += 1;
        match self.items > MOST {
            false => Ok(()),
            true => Err(EngineError::Path {
                path: self.within.target.display().to_string(),
                reason: format!(
                    "it has over {MOST} things that are not in the snapshot: is it the right folder?"
                ),
            }),
        }
    }
}

impl Looked {
    fn nothing() -> Self {
        Self::Parts(Vec::new())
    }
}
