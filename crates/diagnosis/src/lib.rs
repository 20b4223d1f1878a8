//! The whole path of a backup on one scale: what a run will take, what held it back and how much of each step it used.
//!
//! The meter judges what the stages of one run counted, and the lab measures one thing at a time. Here these are put
//! together with what this process used of the computer ([`UsageCounters`]), with the runs before
//! ([`speed_history`]) and with the newest measurement of the way to a repository ([`Ceilings`]).
//!
//! It reads no file and no environment: whoever calls keeps the lines of the history and the reports.
//!
//! ```
//! use holdall_diagnosis::{UsageCounters, judge};
//! use holdall_engine::Run;
//! use holdall_meter::{Layer, StageMeter};
//!
//! let run = Run::new();
//! let before = UsageCounters::now(&run);
//! let read = StageMeter::new("read", Layer::SourceRead, 1);
//! let bytes = read.working(|| 4096);
//! let usage = UsageCounters::now(&run).since(&before);
//! let verdict = judge(1, bytes, 0.001, vec![read.snapshot()], &usage);
//! assert_eq!(verdict.limited_by, Layer::Nothing); // Too short to say.
//! ```

pub mod answers;
mod ceilings;
mod earlier;
mod expected;
mod fits;
mod forecast;
mod lab_server;
mod own_limit;
pub mod path;
mod progress;
pub mod reference;
mod reporting;
pub mod runs;
mod shares;
mod side;
pub mod speed_history;
mod usage;
mod way;

pub use ceilings::{Ceilings, REPOSITORY};
pub use earlier::{Earlier, Wished};
pub use expected::Expected;
pub use fits::Fits;
pub use forecast::{Forecast, Left};
pub use lab_server::{BeyondAServer, LabServer};
pub use own_limit::OwnLimit;
pub use progress::{Recent, Status};
pub use reporting::{followed, report_of_backup, report_of_failure};
pub use shares::{
    name_own_limit, name_server_limit, name_share_of_restore, name_shares, name_yielding,
};
pub use side::{Side, limited_side};
pub use usage::{Usage, UsageCounters, is_own_limit, judge};
pub use way::{Named, Way};
