//! The server that the lab measures, as it is named or paired.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use holdall_diagnosis::{BeyondAServer, LabServer};
use holdall_lab::net::NetPlan;
use holdall_protocol::{ClientOptions, MachineIdentity, RepositoryError};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::open::{self, Patience};

/// The server that was named, `https://HOST:PORT`, or the paired one. Every request and the connecting end once
/// `interrupt` is set.
///
/// # Errors
/// [`Refusal`] if this machine is paired with none, or for more than a server lets itself be measured with;
/// [`RepositoryError::Unreachable`].
pub(crate) fn connect(
    app: &App,
    server: Option<&str>,
    plan: &NetPlan,
    interrupt: Arc<AtomicBool>,
) -> Result<LabServer> {
    LabServer::check(plan).map_err(|why| {
        let refusal = Refusal::new(Exit::Usage, why.to_string());
        match why {
            BeyondAServer::Streams => refusal,
            BeyondAServer::Time => {
                refusal.hint("ask for fewer --buffer or --streams, or a shorter --time")
            }
        }
    })?;
    let (address, signing) = open::paired_server(app, server)?;
    let identity = MachineIdentity::from_seed(signing.seed())?;
    let options = ClientOptions { interrupt, ..Patience::default().options(app) };
    Ok(LabServer::connect(&address, &identity, plan, options)?)
}

/// An error of a measurement; one of a server's says itself what it is.
pub(crate) fn out_of_io(error: io::Error) -> anyhow::Error {
    match error.downcast::<RepositoryError>() {
        Ok(error) => error.into(),
        Err(error) => error.into(),
    }
}
