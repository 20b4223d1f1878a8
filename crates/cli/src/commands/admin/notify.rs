//! `holdall admin notify`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_server::admin::{
    Channel, ChannelEntry, ListChannels, RemoveChannel, SetChannel, TestChannel,
};
use serde::Serialize;
use zeroize::Zeroizing;

use super::ask;
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::terminal::output::Shown;

/// Tells people when a backup fails or does not come: by e-mail, webhook, ntfy or ping
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin notify phone --ntfy https://ntfy.sh/our-backups-8f2k
         holdall admin notify me --email me@example.org --from nas@example.org --smtp mail.example.org:587 \\
             --smtp-user nas --smtp-password-file /root/mail.password
         holdall admin notify checks --ping https://hc.example.org/ping/5c1f
         holdall admin notify phone --test
         holdall admin notify                        (lists them)

Somebody is told when a machine's light on the overview gets worse, such as when its last backup failed or none came for two \
days, when it is well again, and when the disk is nearly full. It is looked every two minutes, and nobody is told twice. A \
ping goes out each time as long as all is well, and to `/fail` behind its address if not: whoever waits for it notices \
too that the server is gone.

Exit codes: 0 done, 1 failed, such as for a trial that did not arrive, 2 wrong usage")]
pub(crate) struct Args {
    /// What it is called; without a name, all are listed
    name: Option<String>,
    /// Posts JSON to this address: title, message, level, server
    #[arg(long, value_name = "URL", group = "how", requires = "name")]
    webhook: Option<String>,
    /// Posts to this topic of an ntfy server
    #[arg(long, value_name = "URL", group = "how", requires = "name")]
    ntfy: Option<String>,
    /// Pings this address, as healthchecks has it
    #[arg(long, value_name = "URL", group = "how", requires = "name")]
    ping: Option<String>,
    /// Writes to this address
    #[arg(long, value_name = "ADDRESS", group = "how", requires_all = ["name", "from", "smtp"])]
    email: Option<String>,
    /// Whose letters they are
    #[arg(long, value_name = "ADDRESS", requires = "email")]
    from: Option<String>,
    /// The mail server
    #[arg(long, value_name = "HOST:PORT", requires = "email")]
    smtp: Option<String>,
    /// Who signs in there
    #[arg(long, value_name = "NAME", requires_all = ["email", "smtp_password_file"])]
    smtp_user: Option<String>,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE", requires = "smtp_user")]
    smtp_password_file: Option<PathBuf>,
    /// Sends a trial
    #[arg(long, requires = "name")]
    test: bool,
    /// Takes it away
    #[arg(long, requires = "name", conflicts_with_all = ["how", "test"])]
    remove: bool,
}

impl Args {
    fn channel(&self) -> Result<Option<Channel>> {
        let secret = |url: &String| Zeroizing::new(url.clone());
        if let Some(url) = &self.webhook {
            return Ok(Some(Channel::Webhook { url: secret(url) }));
        }
        if let Some(url) = &self.ntfy {
            return Ok(Some(Channel::Ntfy { url: secret(url) }));
        }
        if let Some(url) = &self.ping {
            return Ok(Some(Channel::Ping { url: secret(url) }));
        }
        let Some(to) = self.email.clone() else { return Ok(None) };
        Ok(Some(Channel::Email {
            server: self.smtp.clone().unwrap_or_default(),
            user: self.smtp_user.clone(),
            password: self.smtp_password_file.as_deref().map(first_line).transpose()?,
            from: self.from.clone().unwrap_or_default(),
            to,
        }))
    }
}

fn first_line(file: &Path) -> Result<Zeroizing<String>> {
    let text = std::fs::read_to_string(file).map(Zeroizing::new);
    let text = text.with_context(|| format!("reading {}", file.display()))?;
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let Some(name) = args.name.clone() else { return list(data, app) };
    if args.remove {
        let removed = ask(data, &RemoveChannel { name })?.channels;
        removed.iter().try_for_each(|channel| show(app, channel))?;
        return Ok(Exit::Done);
    }
    let channel = args.channel()?;
    if channel.is_none() && !args.test {
        let message = format!("how is {name:?} to tell somebody?");
        let hint = "say --email, --webhook, --ntfy or --ping; --test for a trial; --remove to take it away";
        return Err(Refusal::new(Exit::Usage, message).hint(hint).into());
    }
    if let Some(channel) = channel {
        let set = ask(data, &SetChannel { name: name.clone(), channel })?.channels;
        set.iter().try_for_each(|channel| show(app, channel))?;
    }
    if args.test {
        ask(data, &TestChannel { name })?;
        app.output.say("a trial was sent, and was taken")?;
    }
    Ok(Exit::Done)
}

fn list(data: &Path, app: &App) -> Result<Exit> {
    let channels = ask(data, &ListChannels {})?.channels;
    if channels.is_empty() {
        app.output.say("nobody is told; `holdall admin notify NAME --email ...` changes that")?;
    }
    channels.iter().try_for_each(|channel| show(app, channel))?;
    Ok(Exit::Done)
}

fn show(app: &App, channel: &ChannelEntry) -> Result<()> {
    #[derive(Serialize)]
    struct JsonChannel<'a> {
        name: &'a str,
        kind: &'a str,
        to: &'a str,
    }
    let ChannelEntry { name, kind, to } = channel;
    app.output.object("channel", &JsonChannel { name, kind, to })?;
    let shown = |text: &str| Shown(text.as_bytes()).to_string();
    app.output.result(format_args!("{:<20} {kind:<8} {}", shown(name), shown(to)))?;
    Ok(())
}
