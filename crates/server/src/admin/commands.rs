//! Every command of an administrator, once: what it is called, what it says, what it is answered, and what does it.
//!
//! `docs/protocol.md` has them as lines of JSON.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::administration::Administration;
use super::carried::Carried;
use super::command::{AdminCommand, Pace};
#[cfg(feature = "web")]
use super::described::Described;
use super::entries::{
    AlsoRepair, ApiTokens, Audit, BandwidthRules, Channels, Deletions, Invites, IssuedApiToken,
    IssuedShortCode, IssuedToken, IssuedWebCode, JobList, Judgement, Keepings, LabComparison,
    LabEntry, LabReport, LabReports, Machines, People, Places, Pruned, Quota, Renamed,
    Repositories, RepositoryEntry, Resumed, Runs, Scrubbed, Sessions, Snapshots, Storage, Thinning,
};
use super::identity_copy::IdentityCopy;
use crate::ServerError;
use crate::accounts::{
    BandwidthRule, CertificateStatus, Channel, Invitation, InviteRequest, Keeping, KeepingEntry,
    MachineEntry, Upkeep,
};
use crate::activity::{Activities, SessionEntry};
use crate::auth::rights::Right;
use crate::auth::scope::Scope;
use crate::jobs::JobEntry;
use crate::lab::LabTest;

/// What is to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum WantedKeeping {
    /// These.
    Rules(Keeping),
    /// Whatever is kept of those that have no rules of their own.
    Default,
}

/// What is meant by a name that a machine and a repository may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Only {
    /// The machine.
    Machine,
    /// The repository.
    Repository,
}

macro_rules! commands {
    ($(
        $(#[doc = $doc:literal])*
        $command:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? }:
            $name:literal, $pace:ident, $scope:ident $(($more:ident if |$changing:ident| $changes:expr))?,
            $reply_name:literal $reply:ty,
            |$on:ident, $asked:ident| $work:expr;
    )+) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Serialize, Deserialize)]
            #[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
            pub struct $command { $($(#[$field_meta])* pub $field: $type),* }

            impl AdminCommand for $command {
                const NAME: &'static str = $name;
                const REPLY: &'static str = $reply_name;
                const PACE: Pace = Pace::$pace;
                type Reply = $reply;
            }

            impl Carried for $command {
                fn scope(&self) -> Scope {
                    $(let $changing = self; if $changes { return Scope::$more; })?
                    Scope::$scope
                }

                fn work(&self, $on: &Administration<'_>) -> Result<$reply, ServerError> {
                    let $asked = self;
                    $work
                }
            }
        )+

        /// Whether a command is called so.
        #[cfg(feature = "web")]
        pub(crate) fn is_command(name: &str) -> bool {
            [$($name),+].contains(&name)
        }

        /// What commands are called, and what their answers are.
        #[cfg(test)]
        const NAMES: &[(&str, &str)] = &[$(($name, $reply_name)),+];

        /// A command that came as a line.
        #[derive(Deserialize)]
        #[serde(tag = "command")]
        pub(crate) enum Command {
            $(#[serde(rename = $name)] $command($command)),+
        }

        impl Command {
            pub(crate) fn pace(&self) -> Pace {
                match self { $(Self::$command(_) => $command::PACE),+ }
            }

            pub(crate) fn name(&self) -> &'static str {
                match self { $(Self::$command(_) => $name),+ }
            }

            /// As [`Carried::scope`].
            pub(crate) fn scope(&self) -> Scope {
                match self { $(Self::$command(asked) => asked.scope()),+ }
            }

            /// As [`Carried::changes`].
            #[cfg(feature = "web")]
            pub(crate) fn changes(&self) -> bool {
                match self { $(Self::$command(asked) => asked.changes()),+ }
            }

            /// Does what was asked, and gives the line that answers it.
            pub(crate) fn carry_out(&self, on: &Administration<'_>) -> Result<Line, ServerError> {
                match self { $(Self::$command(asked) => answer_line::<$command>(on.carry_out(asked)?)),+ }
            }
        }

        /// Every command as a document describes it.
        #[cfg(feature = "web")]
        pub(crate) fn described() -> Vec<Described> {
            vec![$(Described::of::<$command, $reply>(
                concat!($($doc, "\n"),*),
                Scope::$scope,
                None$(.or(Some(Scope::$more)))?,
                bare($name).is_none(),
            )),+]
        }
    };
}

commands! {
    /// Makes an invite.
    Invite {
        /// Of the machine that is to come.
        #[serde(flatten)]
        request: InviteRequest,
    }: "invite", Quick, Administer, "invite" Invitation, |on, asked| on.invite(&asked.request);

    /// Makes a short code, in the place of any that is open. It lets a machine in as an invite does, and is good for ten
    /// minutes and one try.
    MakeShortCode {
        /// Of the machine that is to come; without a time.
        #[serde(flatten)]
        request: InviteRequest,
    }: "short-code", Quick, Administer, "short_code" IssuedShortCode, |on, asked| on.short_code(&asked.request);

    /// Lists the invites that are open, the oldest first.
    ListInvites {}: "invites", Quick, Read, "invites" Invites, |on, _asked| {
        Ok(Invites { invites: on.accounts.open_invites() })
    };

    /// Takes an invite back that is open, and tells which it was.
    WithdrawInvite {
        /// What it is called.
        id: String,
    }: "withdraw-invite", Quick, Administer, "invites" Invites, |on, asked| {
        Ok(Invites { invites: vec![on.accounts.withdraw_invite(&asked.id)?] })
    };

    /// Lists all machines, by name.
    ListMachines {}: "machines", Quick, Read, "machines" Machines, |on, _asked| {
        Ok(Machines { machines: on.accounts.machines() })
    };

    /// Tells how the last runs of a machine went, by what it told.
    ListRuns {
        /// As for [`Rights`].
        machine: String,
    }: "runs", Quick, Read, "runs" Runs, |on, asked| Ok(Runs { runs: on.accounts.runs(&asked.machine)? });

    /// Tells what a machine may do, after changing it where a right is given.
    Rights {
        /// A name, an id, or the beginning of an id that no other has.
        machine: String,
        /// What it is to be from now on; none to be told.
        right: Option<Right>,
    }: "rights", Quick, Read (Administer if |asked| asked.right.is_some()), "machine" MachineEntry, |on, asked| on.rights(&asked.machine, asked.right);

    /// Revokes all keys of a machine, and the invites for it that nobody used. Its repository stays.
    Revoke {
        /// As for [`Rights`].
        machine: String,
    }: "revoke", Quick, Administer, "machine" MachineEntry, |on, asked| on.revoke(&asked.machine);

    /// Gives a machine or a repository another name; a machine and its repository of the same name both.
    Rename {
        /// As for [`Rights`], or a repository's name.
        name: String,
        /// What it is to be called.
        new: String,
        /// Which of both is meant.
        #[serde(default)]
        only: Option<Only>,
    }: "rename", Usual, Administer, "renamed" Renamed, |on, asked| on.rename(&asked.name, &asked.new, asked.only);

    /// Revokes a machine at once and asks for its repository to be deleted with it, or for that of a repository alone.
    /// That happens when the repository's delay is over, unless it is cancelled.
    Remove {
        /// As for [`Rename`].
        name: String,
        /// As for [`Rename`].
        #[serde(default)]
        only: Option<Only>,
    }: "remove", Usual, Administer, "deletions" Deletions, |on, asked| {
        Ok(Deletions { deletions: vec![on.remove(&asked.name, asked.only)?] })
    };

    /// Tells how much a repository holds and may hold, after changing that where a quota is given.
    SetQuota {
        /// Its name on this server.
        repository: String,
        /// What it is to be from now on; none to be told.
        quota: Option<Quota>,
    }: "quota", Usual, Read (Administer if |asked| asked.quota.is_some()), "repository" RepositoryEntry, |on, asked| {
        on.quota(&asked.repository, asked.quota)
    };

    /// Lists all repositories, by name, and those that a machine has and did not make yet. What is wrong with a single
    /// one is in its entry.
    ListRepositories {}: "repositories", Usual, Read, "repositories" Repositories, |on, _asked| {
        Ok(Repositories { repositories: on.repositories()? })
    };

    /// Tells what is kept of a repository, after changing that where something is wanted.
    SetKeeping {
        /// Its name on this server; none for all that have no rules of their own.
        repository: Option<String>,
        /// What it is to be from now on; none to be told.
        wanted: Option<WantedKeeping>,
    }: "keeping", Usual, Read (Administer if |asked| asked.wanted.is_some()), "keeping" KeepingEntry, |on, asked| {
        on.keeping(asked.repository.as_deref(), asked.wanted.clone())
    };

    /// Says of each snapshot of a repository why rules keep it, and which they let go. It changes nothing.
    Judge {
        /// Its name on this server.
        repository: String,
        /// The rules; none for those in force.
        rules: Option<Keeping>,
    }: "judge", Usual, Read, "judgement" Judgement, |on, asked| on.judgement(&asked.repository, asked.rules.as_ref());

    /// Tells what is kept by default, and of each repository.
    ListKeeping {}: "keepings", Usual, Read, "keepings" Keepings, |on, _asked| {
        Ok(Keepings { keepings: on.keepings()? })
    };

    /// Asks for snapshots of a repository to be deleted. That happens when the repository's delay is over, unless it
    /// is cancelled.
    Forget {
        /// Its name on this server.
        repository: String,
        /// Their ids, or the beginnings of those.
        snapshots: Vec<String>,
    }: "forget", Usual, Administer, "deletions" Deletions, |on, asked| {
        Ok(Deletions { deletions: vec![on.forget(&asked.repository, &asked.snapshots)?] })
    };

    /// Lists the deletions that wait.
    ListDeletions {}: "pending", Quick, Read, "deletions" Deletions, |on, _asked| {
        Ok(Deletions { deletions: on.accounts.deletions() })
    };

    /// Takes a deletion back, and tells which it was.
    Cancel {
        /// What it is called.
        number: u64,
    }: "cancel", Usual, Operate, "deletions" Deletions, |on, asked| {
        Ok(Deletions { deletions: vec![on.cancel(asked.number)?] })
    };

    /// Makes a token for a repository: with it, that repository's machine may ask for deletions.
    MakeToken {
        /// Its name on this server.
        repository: String,
    }: "token", Usual, Administer, "token" IssuedToken, |on, asked| on.token(&asked.repository);

    /// Gives what nothing can make anew, to be kept elsewhere.
    BackupIdentity {}: "backup-identity", Quick, Own, "identity" IdentityCopy, |on, _asked| on.identity_copy();

    /// Lists the snapshots of a repository, oldest first.
    ListSnapshots {
        /// Its name on this server.
        repository: String,
    }: "snapshots", Usual, Read, "snapshots" Snapshots, |on, asked| on.snapshots(&asked.repository);

    /// Makes a code by which somebody becomes a person who signs in by a browser, once, in the place of any code before.
    MakeWebCode {
        /// Whom it is for; none for whoever types it in.
        #[serde(default)]
        name: Option<String>,
        /// What they may have done: "administer", "operate" or "read".
        #[serde(default = "administer")]
        scope: Scope,
    }: "web-code", Quick, Own, "web_code" IssuedWebCode, |on, asked| on.web_code(asked.name.as_deref(), asked.scope);

    /// Lists who signs in by a browser, and who looks on there by a token.
    ListPeople {}: "people", Quick, Administer, "people" People, |on, _asked| on.people();

    /// Takes away a person who signs in by a browser, ends their sessions, and tells who it was.
    RemovePerson {
        /// What they are called.
        name: String,
    }: "remove-person", Quick, Administer, "people" People, |on, asked| on.remove_person(&asked.name);

    /// Ends all sessions of a person who signs in by a browser, and tells whose they were.
    EndSessions {
        /// What they are called.
        name: String,
    }: "end-sessions", Quick, Administer, "people" People, |on, asked| on.end_sessions(&asked.name);

    /// Makes a token for a program, in the place of any of the same name.
    MakeApiToken {
        /// What it is called.
        name: String,
        /// What may be done with it.
        scope: Scope,
        /// For how many seconds it is accepted; none until it is revoked.
        valid_for_s: Option<u64>,
    }: "api-token", Quick, Own, "api_token" IssuedApiToken, |on, asked| on.api_token(asked);

    /// Lists the tokens for programs, by name.
    ListApiTokens {}: "api-tokens", Quick, Administer, "api_tokens" ApiTokens, |on, _asked| {
        Ok(ApiTokens { tokens: on.accounts.api_tokens()? })
    };

    /// Takes a token for a program away, and tells which it was.
    RevokeApiToken {
        /// What it is called.
        name: String,
    }: "revoke-api-token", Quick, Administer, "api_tokens" ApiTokens, |on, asked| {
        Ok(ApiTokens { tokens: vec![on.accounts.revoke_api_token(&asked.name)?] })
    };

    /// Tells who had what changed, the newest first.
    ListAudit {
        /// Only what has a smaller number.
        before: Option<u64>,
        /// So many entries, at most 500.
        #[serde(default = "hundred")]
        most: usize,
    }: "audit", Quick, Administer, "audit" Audit, |on, asked| on.audit(asked.before, asked.most);

    /// Has the rules of a repository go on after an alarm, and tells that.
    Resume {
        /// Its name on this server.
        repository: String,
    }: "resume", Quick, Administer, "resumed" Resumed, |on, asked| {
        Ok(Resumed { alarm: on.resume(&asked.repository)? })
    };

    /// Says which snapshots of a repository that is full could go.
    Thin {
        /// Its name on this server.
        repository: String,
        /// Whether to ask for that.
        confirmed: bool,
    }: "thin", Usual, Read (Administer if |asked| asked.confirmed), "thinning" Thinning, |on, asked| on.thin(&asked.repository, asked.confirmed);

    /// Has people told of backups that fail or do not come, by a channel of that name.
    SetChannel {
        /// What it is called.
        name: String,
        /// How they are told.
        channel: Channel,
    }: "set-channel", Quick, Administer, "channels" Channels, |on, asked| on.set_channel(&asked.name, &asked.channel);

    /// Lists the channels, without their secrets.
    ListChannels {}: "channels", Quick, Read, "channels" Channels, |on, _asked| on.channels();

    /// Takes a channel away, and tells which it was.
    RemoveChannel {
        /// What it is called.
        name: String,
    }: "remove-channel", Quick, Administer, "channels" Channels, |on, asked| on.remove_channel(&asked.name);

    /// Sends a trial by a channel, and tells by which.
    TestChannel {
        /// What it is called.
        name: String,
    }: "test-channel", Usual, Administer, "channels" Channels, |on, asked| on.test_channel(&asked.name);

    /// Lists the limits of what machines send and are sent, by number.
    ListBandwidth {}: "bandwidth", Quick, Read, "bandwidth" BandwidthRules, |on, _asked| on.bandwidth();

    /// Adds one, which counts within a second, and tells its number.
    AddBandwidth {
        /// When it counts, and what it is.
        rule: BandwidthRule,
    }: "add-bandwidth", Quick, Administer, "bandwidth" BandwidthRules, |on, asked| on.add_bandwidth(&asked.rule);

    /// Takes one away, and tells which it was.
    RemoveBandwidth {
        /// What it is called.
        number: u64,
    }: "remove-bandwidth", Quick, Administer, "bandwidth" BandwidthRules, |on, asked| on.remove_bandwidth(asked.number);

    /// Lists the storage places.
    ListPlaces {}: "places", Usual, Read, "places" Places, |on, _asked| on.places();

    /// Adds one: packs of chunks are moved there from now on.
    AddPlace {
        /// What to call it.
        name: String,
        /// Its folder, on another disk.
        folder: String,
    }: "add-place", Usual, Administer, "places" Places, |on, asked| on.add_place(&asked.name, &asked.folder);

    /// Has one be emptied, into the others or into the data folder.
    DrainPlace {
        /// What it is called.
        name: String,
    }: "drain-place", Usual, Administer, "places" Places, |on, asked| on.drain_place(&asked.name);

    /// Takes one away that is empty.
    RemovePlace {
        /// What it is called.
        name: String,
    }: "remove-place", Usual, Administer, "places" Places, |on, asked| on.remove_place(&asked.name);

    /// Tells when the server keeps house.
    ShowUpkeep {}: "upkeep", Quick, Read, "upkeep" Upkeep, |on, _asked| on.accounts.upkeep();

    /// Changes that from its next look on, an hour later at most, and tells it.
    SetUpkeep {
        /// When, and how often all is read again.
        upkeep: Upkeep,
    }: "set-upkeep", Quick, Administer, "upkeep" Upkeep, |on, asked| on.set_upkeep(&asked.upkeep);

    /// Tells how the certificate for browsers is that an authority gives.
    ShowCertificate {}: "certificate", Quick, Read, "certificate" CertificateStatus, |on, _asked| on.accounts.certificate();

    /// Lists the sessions in which machines store or read now.
    ListSessions {}: "sessions", Quick, Read, "sessions" Sessions, |on, _asked| {
        Ok(Sessions { sessions: on.activities.map(Activities::entries).unwrap_or_default() })
    };

    /// Has a machine's run end: nothing more is done in that session. What it stored by then stays.
    EndSession {
        /// What it is called.
        number: u64,
    }: "end-session", Quick, Operate, "session" SessionEntry, |on, asked| on.end_session(asked.number);

    /// Lists what takes long: what runs, and what ended last.
    ListJobs {}: "jobs", Quick, Read, "jobs" JobList, |on, _asked| Ok(JobList { jobs: on.jobs.entries(on.stores.now_ns()) });

    /// Tells of one of those, with its log and what it was answered.
    ShowJob {
        /// What it is called.
        number: u64,
    }: "job", Quick, Read, "job" JobEntry, |on, asked| on.jobs.entry(asked.number, on.stores.now_ns());

    /// Has one of those end early. What it did by then stays done.
    CancelJob {
        /// What it is called.
        number: u64,
    }: "cancel-job", Quick, Operate, "job" JobEntry, |on, asked| on.jobs.cancel(asked.number, on.stores.now_ns());

    /// Tells what the repositories lie on, how full that is, and when it will be full.
    ShowStorage {}: "storage", Usual, Read, "storage" Storage, |on, _asked| on.storage();

    /// Lists what was measured of this server, the oldest first.
    ListLab {}: "lab-reports", Quick, Read, "lab_reports" LabReports, |on, _asked| on.lab_reports();

    /// Tells what was measured.
    ShowLab {
        /// What it is called.
        number: u64,
    }: "lab-report", Quick, Read, "lab_report" LabReport, |on, asked| on.lab_report(asked.number);

    /// Puts two reports beside each other.
    CompareLab {
        /// What the one is called.
        first: u64,
        /// What the other is called.
        second: u64,
    }: "compare-lab", Quick, Read, "lab_comparison" LabComparison, |on, asked| on.lab_comparison(asked.first, asked.second);

    /// Measures the disk that the repositories lie on, unless a machine stores or reads, and keeps what was found.
    MeasureLab {
        /// What is measured.
        test: LabTest,
        /// For one to three minutes, and not for some seconds.
        #[serde(default)]
        long: bool,
    }: "measure-lab", Long, Operate, "lab_measured" LabEntry, |on, asked| on.measure_lab(asked.test, asked.long);

    /// Applies rules and deletions that are due, and prunes. What is wrong with a single repository is in its entry.
    Prune {
        /// One, by its name on this server; none for all of them.
        repository: Option<String>,
        /// Say only what would go.
        dry_run: bool,
    }: "prune", Long, Operate, "pruned" Pruned, |on, asked| {
        Ok(Pruned { pruned: on.prune(asked.repository.as_deref(), asked.dry_run)? })
    };

    /// Reads everything again and checks hashes and references, and repairs what is to be repaired. What is wrong with a
    /// single repository is in its entry.
    Scrub {
        /// One, by its name on this server; none for all of them.
        repository: Option<String>,
        /// What is to be done beside reading.
        #[serde(default)]
        also: AlsoRepair,
    }: "scrub", Long, Operate (Administer if |asked| asked.also != AlsoRepair::default()), "scrubbed" Scrubbed, |on, asked| {
        Ok(Scrubbed { scrubbed: on.scrub(asked.repository.as_deref(), asked.also)? })
    };
}

fn administer() -> Scope {
    Scope::Administer
}

fn hundred() -> usize {
    100
}

/// Most characters of a job's name: a repository's is shorter.
const TITLE_MOST: usize = 100;

impl Command {
    /// What it is called as a job.
    pub(crate) fn title(&self) -> String {
        let (what, of) = match self {
            Self::MeasureLab(asked) => return format!("lab {}", asked.test),
            Self::Prune(asked) if asked.dry_run => {
                ("look at what a prune would do", &asked.repository)
            }
            Self::Prune(asked) => ("prune", &asked.repository),
            Self::Scrub(asked) if asked.also.repair => ("scrub and repair", &asked.repository),
            Self::Scrub(asked) => ("scrub", &asked.repository),
            _ => ("something", &None),
        };
        let of = of.as_deref().unwrap_or("all repositories");
        format!("{what} of {of}").chars().take(TITLE_MOST).collect()
    }
}

/// The command of that name without any field, if that is one.
#[cfg(feature = "web")]
fn bare(name: &str) -> Option<Command> {
    serde_json::from_value(serde_json::json!({ "command": name })).ok()
}

/// Whether a command only tells where nothing more is said.
#[cfg(feature = "web")]
pub(crate) fn is_told_without_fields(name: &str) -> bool {
    bare(name).is_some_and(|command| !command.changes())
}

/// The line that answers a command.
fn answer_line<C: AdminCommand>(value: C::Reply) -> Result<Line, ServerError> {
    line_of(&Answer::Ok(Tagged { reply: C::REPLY.into(), value }))
}

/// A line with its end. It may have an invite or a token.
pub(crate) type Line = Zeroizing<Vec<u8>>;

/// The line of a command.
pub(super) fn command_line<C: AdminCommand>(command: &C) -> Result<Line, ServerError> {
    #[derive(Serialize)]
    struct Asked<'a, C> {
        command: &'static str,
        #[serde(flatten)]
        fields: &'a C,
    }
    line_of(&Asked { command: C::NAME, fields: command })
}

/// What a line answers to such a command.
pub(super) fn reply_in<C: AdminCommand>(line: &[u8]) -> Result<C::Reply, ServerError> {
    match serde_json::from_slice(line).map_err(|error| failed(&error))? {
        Answer::Ok(Tagged { reply, value }) if reply == C::REPLY => {
            serde_json::from_value(value).map_err(|error| failed(&error))
        }
        Answer::Ok(_) => {
            let reason = "it answered something else; is it of another version?".into();
            Err(ServerError::Admin { reason })
        }
        Answer::Error(reason) => Err(ServerError::Refused { reason }),
    }
}

/// What a line answers, without what is said of it there.
pub(crate) fn reply_of(line: &[u8]) -> Result<serde_json::Value, ServerError> {
    match serde_json::from_slice(line).map_err(|error| failed(&error))? {
        Answer::Ok(Tagged { value, .. }) => Ok(value),
        Answer::Error(reason) => Err(ServerError::Refused { reason }),
    }
}

/// The line that says why a command was not carried out.
pub(crate) fn error_line(reason: String) -> Result<Line, ServerError> {
    line_of(&Answer::<()>::Error(reason))
}

/// A line that answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer<T> {
    Ok(Tagged<T>),
    Error(String),
}

/// An answer behind what it is called.
#[derive(Debug, Serialize, Deserialize)]
struct Tagged<T> {
    reply: String,
    #[serde(flatten)]
    value: T,
}

fn line_of(what: &impl Serialize) -> Result<Line, ServerError> {
    let mut line = Zeroizing::new(serde_json::to_vec(what).map_err(|error| failed(&error))?);
    line.push(b'\n');
    Ok(line)
}

fn failed(error: &serde_json::Error) -> ServerError {
    ServerError::Admin { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_every_command_and_what_it_is_answered() {
        let text = include_str!("../../../../docs/protocol.md");
        let (_, commands) = text.split_once("| command | fields | reply, fields |").unwrap();
        let rows = commands.lines().skip(2).take_while(|line| line.starts_with('|'));
        let quoted = |cell: &'static str| cell.split('`').nth(1).unwrap();
        let documented = rows.map(|row| {
            let cells: Vec<_> = row.split('|').collect();
            (quoted(cells[1]), quoted(cells[3]))
        });
        assert_eq!(documented.collect::<Vec<_>>(), NAMES);
    }

    #[test]
    fn lines_are_what_they_always_were() {
        let text = |line: Line| String::from_utf8(line.to_vec()).unwrap();
        let rights = Rights { machine: "laptop".into(), right: Some(Right::Read) };
        let asked = r#"{"command":"rights","machine":"laptop","right":"read"}"#;
        assert_eq!(text(command_line(&rights).unwrap()), format!("{asked}\n"));
        let request = InviteRequest { name: Some("attic".into()), ..InviteRequest::default() };
        let asked = r#"{"command":"invite","name":"attic","for_machine":null,"repository":null,"addresses":[]}"#;
        assert_eq!(text(command_line(&Invite { request }).unwrap()), format!("{asked}\n"));
        for (bare, is_known) in [
            (r#"{"command":"invite"}"#, true),
            (r#"{"command":"machines","more":1}"#, true),
            (r#"{"command":"scrub"}"#, true),
            (r#"{"command":"prune"}"#, false),
            (r#"{"command":"delete"}"#, false),
        ] {
            assert_eq!(serde_json::from_str::<Command>(bare).is_ok(), is_known, "{bare}");
        }

        let value = Resumed { alarm: None };
        let line = line_of(&Answer::Ok(Tagged { reply: "resumed".into(), value })).unwrap();
        assert_eq!(text(line.clone()), "{\"ok\":{\"reply\":\"resumed\",\"alarm\":null}}\n");
        assert_eq!(reply_in::<Resume>(&line).unwrap(), Resumed { alarm: None });
        assert!(matches!(reply_in::<Revoke>(&line), Err(ServerError::Admin { .. })));
        let refused = error_line("why".into()).unwrap();
        assert_eq!(text(refused.clone()), "{\"error\":\"why\"}\n");
        assert!(matches!(reply_in::<Resume>(&refused), Err(ServerError::Refused { .. })));
    }
}
