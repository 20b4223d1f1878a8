//! The walk that was told where to look: it lists the places and what is on the way to them, and the parent's
//! entries stand for everything else.

use std::io;

use holdall_sys::{Name, Stat};
use holdall_tree::PathKey;

use super::super::listed::Listed;
use super::super::places::{Places, Scope};
use super::{Frame, ItemSink, Plan};
use crate::EngineError;
use crate::walked::FullWalk;

impl<F: ItemSink> Plan<'_, F> {
    /// What is looked at of a source.
    pub(super) fn scope_of_source(
        &mut self,
        path: &PathKey,
        stat: &Stat,
    ) -> Result<Scope, EngineError> {
        let Some(places) = &self.places else { return Ok(Scope::All) };
        let scope = places.scope_of(path).unwrap_or(Scope::Through);
        let is_same = self.items.directory_before(path)? == Some(stat.inode);
        Ok(if is_same { scope } else { Scope::All })
    }

    /// What is looked at of a directory in `frame`. If that is nothing, it is recorded here with all that the parent
    /// has below it.
    pub(super) fn scope_within(
        &mut self,
        frame: &Frame,
        path: &PathKey,
        stat: &Stat,
    ) -> Result<Option<Scope>, EngineError> {
        let Some(places) = self.places.as_ref().filter(|_| frame.scope == Scope::Direct) else {
            return Ok(Some(Scope::All));
        };
        let scope = places.scope_of(path);
        let is_mounted =
            stat.device != frame.device || self.walk.has_mount(&frame.listed.dir, path.name());
        if is_mounted || self.items.directory_before(path)? != Some(stat.inode) {
            return Ok(Some(Scope::All));
        }
        if scope.is_none() {
            self.add(path.clone(), *stat, frame.read(*stat))?;
            self.keep(&path.before_children(), path.after_subtree().as_deref())?;
        }
        Ok(scope)
    }

    /// Goes on in the innermost of `frames`, in which nothing is looked at but the way to places: keeps all up to
    /// the next one, and steps into what leads there.
    pub(super) fn go_through(&mut self, frames: &mut Vec<Frame>) -> Result<(), EngineError> {
        let Some(frame) = frames.last_mut() else { return Ok(()) };
        let from = std::mem::take(&mut frame.kept_until);
        let next = |places: &Places| places.next_below(&frame.path, &from);
        let Some(child) = self.places.as_ref().and_then(next) else {
            self.keep(&from, frame.path.after_subtree().as_deref())?;
            return frames.pop().map_or(Ok(()), |done| self.leave(&done));
        };
        self.keep(&from, Some(child.as_bytes()))?;
        frame.kept_until = child.after_subtree().unwrap_or_default();
        let Some(inode) = self.items.directory_before(&child)? else {
            // It was no directory, or left out: by a rule that holds no more, as what was mounted there, or as this
            // repository. Its folder says what it is now.
            let comes_before =
                |name: Name<'_>| frame.path.child(name.as_bytes()).is_ok_and(|path| path < child);
            let names = frame.listed.names.iter();
            frame.next = names.take_while(|entry| comes_before(entry.name())).count();
            frame.scope = Scope::Direct;
            return Ok(());
        };
        let below = self.enter_known(frame, child, inode)?;
        frames.extend(below);
        Ok(())
    }

    /// Steps into a directory in `frame` that the parent has.
    fn enter_known(
        &mut self,
        frame: &Frame,
        path: PathKey,
        inode: u64,
    ) -> Result<Option<Frame>, EngineError> {
        let scope = self.places.as_ref().and_then(|places| places.scope_of(&path));
        let scope = scope.unwrap_or(Scope::All);
        let look = || self.look_into(frame, path.name(), scope);
        let looked = self.shared.run.looking_at(path.to_absolute(), look);
        let is_known = |stat: &Stat| stat.inode == inode && stat.device == frame.device;
        let known = looked.ok().filter(|(stat, _)| is_known(stat));
        let (stat, listed) = known.ok_or(FullWalk::Unfit)?;
        let below = self.enter(path, &stat, Ok(listed), frame.stays_on)?;
        let is_ruled = |below: &Frame| below.is_ruled || frame.is_ruled;
        Ok(below.map(|below| Frame { scope, is_ruled: is_ruled(&below), ..below }))
    }

    fn look_into(&self, frame: &Frame, name: &[u8], scope: Scope) -> io::Result<(Stat, Listed)> {
        let dir = frame.listed.dir.open_child(Name::new(name)?)?;
        Ok((dir.stat_self()?, self.walk.read(dir, scope)?))
    }

    fn keep(&mut self, from: &[u8], until: Option<&[u8]>) -> Result<(), EngineError> {
        self.added += self.items.keep(from, until)?;
        Ok(())
    }
}
