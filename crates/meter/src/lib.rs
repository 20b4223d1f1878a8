//! Says which layer held a run back, from the time that its stages counted.
//!
//! A backup that is slow does not say why: a full queue looks the same whether the disk, the
//! processor, the network or the server is behind it. Every stage of a pipeline therefore counts
//! three times with a [`StageMeter`]: working, waiting for input, waiting for output. [`judge`]
//! turns those counters into a [`Verdict`] that names the [`Layer`] and says how sure it is. What runs
//! will take is fitted to those before them ([`cost`]).
//!
//! It goes one way, from counters to words:
//!
//! ```text
//! StageMeter ──> StageCounters ──> RunFigures ──> candidates ──> judge ──> Verdict
//! ```
//!
//! This crate knows no pipeline: stages have a name, a layer and an order, and that is all. It measures
//! nothing by itself, and asks the system for nothing but the time.
//!
//! ```
//! use holdall_meter::{Layer, RunFigures, StageMeter, Unit, judge};
//!
//! let read = StageMeter::new("read", Layer::SourceRead, 1);
//! let bytes = read.working(|| 4096u64);
//! let verdict = judge(&RunFigures {
//!     wall_seconds: 0.001,
//!     items: 1,
//!     bytes,
//!     unit: Unit::BytesPerSecond,
//!     stages: vec![read.snapshot()],
//!     process_cpu_seconds: 0.001,
//!     cores_available: 2.0,
//!     cpu_throttled_seconds: None,
//!     computer_busy_share: None,
//!     memory_stalled_seconds: None,
//!     pages_read_back: 0,
//!     carrying_seconds: 0.0,
//! });
//! assert_eq!(verdict.limited_by, Layer::Nothing); // Too short to say.
//! ```

mod candidate;
pub mod cost;
mod curve;
mod figures;
mod help;
mod judge;
mod latency;
mod layer;
mod meter;
mod probe;
mod run_figures;
mod stage;
mod verdict;

pub use curve::{RunCurve, RunPoint};
pub use figures::{
    bar, count, counted, duration, fitting, grouped, per_second, size, whole_duration,
};
pub use judge::judge;
pub use latency::{Latency, LatencyCount};
pub use layer::Layer;
pub use meter::StageMeter;
pub use probe::{Moved, Probe, Step};
pub use run_figures::RunFigures;
pub use stage::StageCounters;
pub use verdict::{Unit, Verdict};
