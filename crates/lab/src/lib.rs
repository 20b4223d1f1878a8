//! Measures disks, files, networks and steps of work, and writes reports of what it found.
//!
//! Each measurement is a row, a [`Measurement`]; rows, and the circumstances in which they were measured, make a
//! [`report::Report`], which can be compared with another.
//!
//! This crate knows no pipeline and has no keys: whoever has a step of work hands it over as a
//! [`Probe`](holdall_meter::Probe), and what is at the other end of a network as a [`net::Far`].
//!
//! ```
//! use std::time::Duration;
//!
//! use holdall_lab::report::{Form, Report};
//! use holdall_lab::{Stop, measure_probe};
//! use holdall_meter::{Moved, Probe, Step};
//!
//! let begin = || -> Step {
//!     let bytes = vec![7; 1 << 16];
//!     Box::new(move || Moved { input_bytes: 1 << 16, output_bytes: bytes.clone().len() as u64 })
//! };
//! let probe = Probe { name: "copy".into(), sample: "sevens", begin: Box::new(begin) };
//! let probed = measure_probe(&probe, 1, Duration::from_millis(1), &Stop::default())?;
//! assert_eq!(probed.output_ratio, 1.0);
//!
//! let mut report = Report::new("an example".into(), "2026-11-29T12:00:00Z".into());
//! report.measurements.push(probed.measurement);
//! assert!(report.write(Form::Text).contains("copy"));
//! # Ok::<_, holdall_lab::LabError>(())
//! ```

mod cache;
mod child_path;
pub mod disk;
mod error;
pub mod files;
mod measurement;
pub mod net;
pub mod path;
mod probe;
pub mod report;
mod samples;
mod scratch;
mod stop;
pub mod storage_stack;

pub use error::LabError;
pub use measurement::Measurement;
pub use probe::{Probed, measure_probe};
pub use samples::{incompressible, text};
pub use scratch::{Remains, SHARE, Scratch};
pub use stop::Stop;
