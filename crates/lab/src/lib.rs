//! Says which layer held a run back, from the time that its stages counted.
//!
//! A backup that is slow does not say why: a full queue looks the same whether the disk, the
//! processor, the network or the server is behind it. Every stage of a pipeline therefore counts
//! three times with a [`StageMeter`]: working, waiting for input, waiting for output. [`judge`]
//! turns those counters into a [`Verdict`] that names the [`Layer`] and says how sure it is.
//!
//! This crate knows no pipeline: stages have a name, a layer and an order, and that is all.
//!
//! ```
//! use holdall_lab::{Layer, RunFigures, StageMeter, Unit, judge};
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

mod cache;
mod candidate;
mod child_path;
pub mod cost;
pub mod disk;
mod error;
pub mod files;
pub mod ground;
mod help;
mod judge;
mod latency;
mod layer;
mod measurement;
mod meter;
pub mod net;
pub mod path;
mod probe;
pub mod report;
mod run_figures;
mod samples;
mod scratch;
mod stage;
mod stop;
mod verdict;

pub use error::LabError;
pub use judge::judge;
pub use latency::{Latency, LatencyCount};
pub use layer::Layer;
pub use measurement::Measurement;
pub use meter::StageMeter;
pub use probe::{Moved, Probe, Probed, Step, measure_probe};
pub use run_figures::RunFigures;
pub use samples::{incompressible, text};
pub use scratch::{Remains, SHARE, Scratch};
pub use stage::StageCounters;
pub use stop::Stop;
pub use verdict::{Unit, Verdict};
