//! The ladder: what each step can do, how much of it a backup used, and what follows from that.

use holdall_lab::report::{Moment, Needs, Rung};
use holdall_meter::{Layer, Unit, Verdict};

use super::ran::{Ran, Reached};

/// A step of which so much was used held a backup back that no stage of its own could tell about.
const USED_UP: f64 = 0.7;
/// A step that did less alone than the backup needed of it, by more than measurements differ, was disturbed.
const DISTURBED: f64 = 1.1;

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

    /// Whether it did less alone than the backup, which used so much of it.
    fn is_disturbed(&self, used: f64) -> bool {
        self.needs != Needs::Copy && used > DISTURBED
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
        let used = used.min(1.0);
        let percent = used * 100.0;
        verdict.explanation += &format!(
            " Of the steps alone, {} was used most: {percent:.0} % of what it can do.",
            step.name
        );
        if verdict.limited_by == Layer::Unsure && used >= USED_UP {
            verdict.limited_by = step.layer;
            verdict.confidence = 0.5 * used;
            verdict.ratio = used;
            verdict.ceiling = verdict.achieved / verdict.ratio;
            verdict.help = step.layer.help(None);
        }
        if let Some((step, used)) = self.used_of(verdict.limited_by) {
            verdict.weigh_against(&step.name, used);
        }
        if let Some(figure) = self.figure_of(verdict.limited_by) {
            verdict.name_figure(&figure);
        }
        verdict
    }

    /// The step of a layer, and how much of it the backup used.
    fn used_of(&self, layer: Layer) -> Option<(&Step, f64)> {
        let step =
            self.steps.iter().find(|step| step.layer == layer && step.needs != Needs::Copy)?;
        Some((step, step.used(&self.pace?)?))
    }

    /// The step of which the backup used most. One that was disturbed says nothing.
    fn most_used(&self) -> Option<(&Step, f64)> {
        let pace = self.pace?;
        let steps = self.steps.iter().filter(|step| step.needs != Needs::Copy);
        let used = steps.filter_map(|step| Some((step, step.used(&pace)?)));
        let sound = used.filter(|(step, used)| !step.is_disturbed(*used));
        sound.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Steps and backups as a report has them.
    fn rungs(&self) -> Vec<Rung> {
        let step = |step: &Step| {
            let used = self.pace.as_ref().and_then(|pace| step.used(pace));
            Rung {
                name: step.name.clone(),
                bytes_per_second: step.bytes,
                items_per_second: step.items,
                reached: false,
                used,
                needs: Some(step.needs),
                disturbed: used.is_some_and(|used| step.is_disturbed(used)),
            }
        };
        self.steps.iter().map(step).chain(self.reached.iter().cloned()).collect()
    }

    /// What the step of a layer can do, unless it was disturbed.
    fn figure_of(&self, layer: Layer) -> Option<String> {
        let is_sound = |step: &&Step| {
            let used = self.pace.as_ref().and_then(|pace| step.used(pace));
            !used.is_some_and(|used| step.is_disturbed(used))
        };
        let step = self.steps.iter().find(|step| step.layer == layer).filter(is_sound);
        let bytes = step.and_then(|step| step.bytes).map(|rate| Unit::BytesPerSecond.show(rate));
        let items = step.and_then(|step| step.items).map(|rate| Unit::ItemsPerSecond.show(rate));
        bytes.or(items)
    }

    /// What the ladder comes to, a sentence each: what the backup did before and after compression, how it stands to
    /// plain copies, and which steps were disturbed.
    fn sentences(&self) -> Vec<String> {
        let Some(pace) = &self.pace else { return Vec::new() };
        let rate = |value| Unit::BytesPerSecond.show(value);
        let mut first = format!("The first backup did {} of files", rate(pace.bytes));
        if pace.stored > 0.0 && pace.bytes > 0.0 {
            let share = pace.stored / pace.bytes * 100.0;
            let where_to = if pace.sent > 0.0 { "sent" } else { "stored" };
            let after = if pace.sent > 0.0 { pace.sent } else { pace.stored };
            first +=
                &format!("; after compression to {share:.0} %, {} were {where_to}", rate(after));
        }
        let copies = self.steps.iter().filter(|step| step.needs == Needs::Copy);
        let beside = copies.filter_map(|step| {
            let times = step.used(pace)?;
            Some(format!("{times:.1} times as fast as to {}", step.name))
        });
        let beside: Vec<_> = beside.collect();
        let mut said = vec![first + "."];
        if !beside.is_empty() {
            said.push(format!("It was {}.", beside.join(" and ")));
        }
        let disturbed = self
            .steps
            .iter()
            .filter(|step| step.used(pace).is_some_and(|used| step.is_disturbed(used)));
        said.extend(disturbed.map(|step| {
            format!(
                "{} was disturbed: alone it did less than the backup then reached. Something else ran at that \
                 time, or the system had cached by then what it read; measure again.",
                step.name
            )
        }));
        said
    }

    /// Steps and backups, what they come to, the verdict on the backup, and how that went from moment to moment.
    pub(super) fn end(self) -> Climbed {
        let sentences = self.sentences();
        Climbed { ladder: self.rungs(), sentences, verdict: self.verdict, timeline: self.timeline }
    }
}

/// What a measurement of the path came to.
#[derive(Debug)]
pub struct Climbed {
    /// The steps, and the backups beside them.
    pub ladder: Vec<Rung>,
    /// What these come to, a sentence each.
    pub sentences: Vec<String>,
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
        needs: None,
        disturbed: false,
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
            help: limited_by.help(None),
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
    fn a_step_that_did_less_than_the_backup_is_marked_and_no_ceiling() {
        // The wire did 100 MB/s alone, and 150 MB/s went over it.
        let ladder = ladder(Layer::Network, 300_000_000);
        let wire = ladder.rungs().into_iter().find(|rung| rung.name == "wire").unwrap();
        assert!(wire.disturbed && wire.beside().as_deref() == Some("disturbed"), "{wire:?}");
        let told = ladder.verdict.clone().unwrap();
        assert!(told.explanation.contains("source read was used most: 25 %"), "{told:?}");
        assert!(!told.help.unwrap().contains("100.0 MB/s"), "it does more than that");
        let sentences = ladder.sentences().join("\n");
        assert!(sentences.contains("wire was disturbed"), "{sentences}");
        // A little more is as good as all of it, and nothing is told to be more than 100 %.
        let full = self::ladder(Layer::Unsure, 210_000_000);
        let wire = full.rungs().into_iter().find(|rung| rung.name == "wire").unwrap();
        assert_eq!((wire.disturbed, wire.beside().as_deref()), (false, Some("100 % used")));
        let told = full.verdict.unwrap();
        assert!(told.explanation.contains("wire was used most: 100 %"), "{told:?}");
        assert_eq!((told.limited_by, told.confidence), (Layer::Network, 0.5));
    }

    #[test]
    fn what_a_backup_did_is_told_before_and_after_compression_and_beside_copies() {
        let ladder = ladder(Layer::Network, 96_000_000);
        let copy = ladder.rungs().into_iter().find(|rung| rung.name == "copy").unwrap();
        assert_eq!(copy.beside().as_deref(), Some("2.0 times"));
        assert_eq!(
            ladder.sentences(),
            [
                "The first backup did 100.0 MB/s of files; after compression to 48 %, 48.0 MB/s were sent.",
                "It was 2.0 times as fast as to copy."
            ]
        );
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
