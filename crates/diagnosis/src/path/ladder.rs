//! The ladder: what each step can do, how much of it a backup used, and what follows from that.

use holdall_lab::report::{Moment, Rung};
use holdall_meter::{Layer, Unit, Verdict};

use super::ran::{Ran, Reached};

/// A step of which so much was used held a backup back that no stage of its own could tell about.
const USED_UP: f64 = 0.7;

/// What of a step a backup needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Its items.
    Items,
    /// Its bytes, as they are.
    Plain,
    /// The bytes that it sent.
    Sent,
    /// The bytes that it stored.
    Stored,
    /// Nothing: it is another way to move the same bytes.
    Copy,
}

/// A step that was measured alone.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) layer: Layer,
    pub(super) needs: Needs,
    /// What it can do, in bytes a second.
    pub(super) bytes: Option<f64>,
    /// The same in items.
    pub(super) items: Option<f64>,
}

/// What a backup did in a second.
#[derive(Debug, Clone, Copy)]
struct Pace {
    items: f64,
    bytes: f64,
    sent: f64,
    stored: f64,
}

impl Step {
    /// How much of it the backup used.
    fn used(&self, pace: &Pace) -> Option<f64> {
        let (needed, can_do) = match self.needs {
            Needs::Items => (pace.items, self.items),
            Needs::Plain | Needs::Copy => (pace.bytes, self.bytes),
            Needs::Sent => (pace.sent, self.bytes),
            Needs::Stored => (pace.stored, self.bytes),
        };
        can_do.filter(|&can_do| can_do > 0.0).map(|can_do| needed / can_do)
    }
}

/// All steps, and the backups beside them.
#[derive(Default)]
pub(super) struct Ladder {
    steps: Vec<Step>,
    reached: Vec<Rung>,
    pace: Option<Pace>,
    verdict: Option<Verdict>,
    timeline: Vec<Moment>,
}

impl Ladder {
    /// One more step.
    pub(super) fn add(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// What the backups and the restore reached; it is the first that the steps are compared with.
    pub(super) fn reached(&mut self, reached: &Reached) {
        let Reached { first, unchanged, restored } = reached;
        self.reached = vec![
            rung("first backup", first, true),
            rung("unchanged backup", unchanged, false),
            rung("restore", restored, true),
        ];
        self.pace = Some(Pace {
            items: first.rate(first.items),
            bytes: first.rate(first.bytes),
            sent: first.rate(first.sent_bytes),
            stored: first.rate(first.stored_bytes),
        });
        self.timeline.clone_from(&first.timeline);
        self.verdict = Some(self.judged(&first.verdict));
    }

    /// The verdict on the backup, with what the steps alone say of it.
    fn judged(&self, verdict: &Verdict) -> Verdict {
        let mut verdict = verdict.clone();
        if verdict.limited_by == Layer::Nothing {
            // What a run that was over at once used of a step says nothing.
            verdict.help =
                Some("What would help: more to measure, by --size or SOURCE.".to_owned());
            return verdict;
        }
        let Some((step, used)) = self.most_used() else { return verdict };
        let percent = used * 100.0;
        verdict.explanation += &format!(
            " Of the steps alone, {} was used most: {percent:.0} % of what it can do.",
            step.name
        );
        if verdict.limited_by == Layer::Unsure && used >= USED_UP {
            verdict.limited_by = step.layer;
            verdict.confidence = 0.5 * used.min(1.0);
            verdict.ratio = used.min(1.0);
            verdict.ceiling = verdict.achieved / verdict.ratio;
        }
        let figure = self.figure_of(verdict.limited_by);
        verdict.help = verdict.help_with(figure.as_deref());
        if let Some((step, used)) = self.used_of(verdict.limited_by) {
            verdict.weigh_against(&step.name, used);
        }
        verdict
    }

    /// The step of a layer, and how much of it the backup used.
    fn used_of(&self, layer: Layer) -> Option<(&Step, f64)> {
        let step =
            self.steps.iter().find(|step| step.layer == layer && step.needs != Needs::Copy)?;
        Some((step, step.used(&self.pace?)?))
    }

    fn most_used(&self) -> Option<(&Step, f64)> {
        let pace = self.pace?;
        let steps = self.steps.iter().filter(|step| step.needs != Needs::Copy);
        let used = steps.filter_map(|step| Some((step, step.used(&pace)?)));
        used.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Steps and backups as a report has them.
    fn rungs(&self) -> Vec<Rung> {
        let step = |step: &Step| Rung {
            name: step.name.clone(),
            bytes_per_second: step.bytes,
            items_per_second: step.items,
            reached: false,
            used: self.pace.as_ref().and_then(|pace| step.used(pace)),
        };
        self.steps.iter().map(step).chain(self.reached.iter().cloned()).collect()
    }

    /// What the step of a layer can do.
    fn figure_of(&self, layer: Layer) -> Option<String> {
        let step = self.steps.iter().find(|step| step.layer == layer);
        let bytes = step.and_then(|step| step.bytes).map(|rate| Unit::BytesPerSecond.show(rate));
        let items = step.and_then(|step| step.items).map(|rate| Unit::ItemsPerSecond.show(rate));
        bytes.or(items)
    }

    /// Steps and backups, the verdict on the backup, and how that went from moment to moment.
    pub(super) fn end(self) -> Climbed {
        Climbed { ladder: self.rungs(), verdict: self.verdict, timeline: self.timeline }
    }
}

/// What a measurement of the path came to.
#[derive(Debug)]
pub struct Climbed {
    /// The steps, and the backups beside them.
    pub ladder: Vec<Rung>,
    /// What held the backup back, with what the steps alone say of it.
    pub verdict: Option<Verdict>,
    /// How the backup went from moment to moment.
    pub timeline: Vec<Moment>,
}

/// What a run reached. A backup that finds nothing new moves no bytes to speak of.
fn rung(name: &str, ran: &Ran, moved: bool) -> Rung {
    Rung {
        name: name.to_owned(),
        bytes_per_second: moved.then(|| ran.rate(ran.bytes)),
        items_per_second: Some(ran.rate(ran.items)),
        reached: true,
        used: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(limited_by: Layer) -> Verdict {
        Verdict {
            limited_by,
            confidence: 0.3,
            achieved: 1.0,
            ceiling: 2.0,
            unit: Unit::BytesPerSecond,
            ratio: 0.5,
            explanation: "It is so.".to_owned(),
            help: None,
            by_distance: false,
            stages: Vec::new(),
        }
    }

    fn ladder(limited_by: Layer, sent_bytes: u64) -> Ladder {
        let mut ladder = Ladder::default();
        let steps = [
            ("source walk", Layer::SourceMetadata, Needs::Items, None, Some(1000.0)),
            ("source read", Layer::SourceRead, Needs::Plain, Some(400e6), Some(500.0)),
            ("wire", Layer::Network, Needs::Sent, Some(100e6), None),
            ("copy", Layer::Unsure, Needs::Copy, Some(50e6), None),
        ];
        for (name, layer, needs, bytes, items) in steps {
            ladder.add(Step { name: name.to_owned(), layer, needs, bytes, items });
        }
        let ran = || Ran {
            seconds: 2.0,
            items: 200,
            bytes: 200_000_000,
            stored_bytes: sent_bytes,
            sent_bytes,
            problems: 0,
            verdict: verdict(limited_by),
            timeline: Vec::new(),
            cache: None,
        };
        ladder.reached(&Reached { first: ran(), unchanged: ran(), restored: ran() });
        ladder
    }

    #[test]
    fn each_step_is_compared_with_what_the_backup_needed_of_it() {
        let rungs = ladder(Layer::Network, 180_000_000).rungs();
        let used: Vec<_> = rungs.iter().map(|rung| rung.used).collect();
        assert_eq!(used[..5], [Some(0.1), Some(0.25), Some(0.9), Some(2.0), None]);
        let reached: Vec<_> = rungs[4..].iter().map(|rung| rung.bytes_per_second).collect();
        assert_eq!(reached, [Some(100e6), None, Some(100e6)]);
        assert!(rungs[4..].iter().all(|rung| rung.reached && rung.items_per_second == Some(100.0)));
    }

    #[test]
    fn a_backup_that_can_not_tell_is_told_by_the_step_that_is_used_up() {
        let judged = |layer, sent| ladder(layer, sent).verdict.unwrap();
        let told = judged(Layer::Unsure, 180_000_000);
        assert_eq!((told.limited_by, told.confidence), (Layer::Network, 0.45));
        assert!(told.explanation.contains("wire was used most: 90 %"), "{}", told.explanation);
        assert_eq!((told.ratio, told.ceiling), (0.9, told.achieved / 0.9));
        assert_eq!(judged(Layer::Unsure, 100_000_000).limited_by, Layer::Unsure);
        assert_eq!(judged(Layer::SourceRead, 180_000_000).limited_by, Layer::SourceRead);
        // What was too short to tell stays so, however busy a step was meanwhile.
        assert_eq!(judged(Layer::Nothing, 180_000_000).limited_by, Layer::Nothing);
    }

    #[test]
    fn a_verdict_on_a_step_that_does_much_more_alone_is_less_sure_and_says_so() {
        let told = ladder(Layer::SourceRead, 180_000_000).verdict.unwrap();
        assert_eq!((told.limited_by, told.confidence), (Layer::SourceRead, 0.3 * 0.75));
        assert!(told.explanation.contains("source read alone is 4.0 times"), "{told:?}");
        let told = ladder(Layer::Network, 180_000_000).verdict.unwrap();
        assert!(told.confidence == 0.3 && !told.explanation.contains("alone is"), "{told:?}");
    }

    #[test]
    fn what_would_help_has_the_figure_of_its_step() {
        let help = |layer, sent| ladder(layer, sent).verdict.unwrap().help;
        let told = help(Layer::Network, 180_000_000).unwrap();
        assert!(told.contains("a faster wire (100.0 MB/s now)"), "{told}");
        assert_eq!(help(Layer::Unsure, 1), None);
        let told = help(Layer::SourceRead, 180_000_000).unwrap();
        assert!(told.contains("uncertain"), "a quarter of it was used: {told}");
        let told = help(Layer::Nothing, 180_000_000).unwrap();
        assert!(told.contains("more to measure"), "{told}");
    }
}
