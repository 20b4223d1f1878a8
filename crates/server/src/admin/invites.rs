//! Letting machines in: by an invite, or by a short code that stands for one.

use holdall_protocol::{INVITE_MAX_ADDRESSES, ShortCode};
use zeroize::Zeroizing;

use super::administration::Administration;
use super::entries::IssuedShortCode;
use crate::ServerError;
use crate::accounts::{Invitation, InviteRequest};
use crate::addresses::{reachable_at, with_port};
use crate::auth::identity::random;

impl Administration<'_> {
    /// Makes an invite.
    pub(super) fn invite(&self, request: &InviteRequest) -> Result<Invitation, ServerError> {
        let made = self.invitation(request)?;
        self.log(&format!("made an invite{}", of_whom(request)));
        Ok(made)
    }

    /// Makes a short code for an invite, which nobody else is shown.
    pub(super) fn short_code(
        &self,
        request: &InviteRequest,
    ) -> Result<IssuedShortCode, ServerError> {
        let codes = self.short_codes.ok_or_else(|| {
            ServerError::refused(
                "no server runs here, and short codes are known to a running one alone; start it with `holdall serve`, or \
                 make an invite",
            )
        })?;
        if request.valid_for_s.is_some() {
            return Err(ServerError::refused(
                "a short code is good for ten minutes, and no longer",
            ));
        }
        let now_ns = self.accounts.clock().running_ns();
        codes.check_may_make(now_ns)?;
        let Invitation { invite, expires_ns } = self.invitation(request)?;
        let mut bytes = Zeroizing::new([0; 8]);
        random(&mut bytes[..])?;
        let code = ShortCode::from_random(*bytes);
        let (text, addresses) = (code.to_text(), invite.addresses.clone());
        if let Some(before) = codes.open(code, invite, now_ns) {
            self.accounts.forget_invite(&before.secret)?;
        }
        self.log(&format!("made a short code{}", of_whom(request)));
        Ok(IssuedShortCode { code: text, expires_ns, addresses })
    }

    /// An invite, with the addresses that were asked for or those that are found.
    fn invitation(&self, request: &InviteRequest) -> Result<Invitation, ServerError> {
        let asked = request.addresses.iter().map(|address| with_port(address, self.listen.port()));
        let asked: Vec<_> = asked.collect::<Result<_, _>>()?;
        if request.addresses.len() > INVITE_MAX_ADDRESSES {
            let reason = format!("an invite has at most {INVITE_MAX_ADDRESSES} addresses");
            return Err(ServerError::refused(reason));
        }
        let addresses = match request.addresses.is_empty() {
            true => reachable_at(self.listen),
            false => asked,
        };
        self.accounts.invite(request, self.identity, addresses)
    }
}

/// Whom it is for, as the log says it.
fn of_whom(request: &InviteRequest) -> String {
    let InviteRequest { name, for_machine, repository, .. } = request;
    let named = name.as_ref().or(for_machine.as_ref()).or(repository.as_ref());
    named.map(|named| format!(" for {named}")).unwrap_or_default()
}
