//! The `holdall` command as users and scripts see it: real processes, real servers, real files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests fail by panicking, are told how often by variables, and say what they did and leave out"
)]

mod admin;
mod agent;
mod agent_bus;
mod agent_day;
mod agent_journal;
mod all_series;
mod audits;
mod beginning;
mod browse;
mod bus;
mod canary;
mod clocks;
mod closed_folders;
mod columns;
mod commands;
mod compacting;
mod config;
mod container;
mod copied_ages;
mod copy;
mod cuts;
mod databases;
mod dead_ends;
mod debian;
mod defaults;
mod deleting;
mod deleting_guards;
mod deleting_meanwhile;
mod directory;
mod drills;
mod drips;
mod edits;
mod emptied;
mod erasing;
mod evil_server;
mod failures;
mod fidelity;
mod folding;
mod foreign;
mod forgetting;
mod fs_snapshots;
mod full;
mod golden;
mod gone_on;
mod help;
mod hints;
mod histories;
mod house;
mod importing;
mod in_place;
mod interrupt;
mod journeys;
mod keeping;
mod keyring;
mod keys;
mod kill;
mod kits;
mod known;
mod lab;
mod lab_net;
mod lab_path;
mod last_copy;
mod latest_of;
mod linked;
mod lost;
mod lost_sectors;
mod manners;
mod mistakes;
mod mount;
mod mounts;
mod moving;
mod newest_gone;
mod noticed;
mod nth_call;
mod nth_call_served;
mod ordinary;
mod packaging;
mod page;
mod pairing;
mod paths;
mod patterns;
mod pipes;
mod places;
#[cfg(feature = "verdicts")]
mod plants;
mod private;
mod process_limits;
mod reading;
mod reference;
mod removing;
mod repair;
mod restore_cuts;
mod restored_over;
mod restored_times;
mod restored_where;
mod resuming;
mod rules;
mod runs_told;
mod schema;
mod second;
mod server_identity;
mod server_log;
mod sessions;
mod sets;
mod share;
mod short_calls;
mod silent;
mod sleepers;
mod soak;
mod sources;
mod speed;
mod stalled;
mod swapped;
mod tags;
mod told_where;
mod try_it;
mod unchanged;
mod unseen;
mod unsized_files;
mod vanishing;
mod vast_files;
#[cfg(feature = "verdicts")]
mod verdicts;
mod wake;
mod walk;
mod web;
mod worth;
