//! Asking the authority for a certificate.

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::challenge::Challenges;
use super::http::Client;
use super::kept::Kept;
use crate::auth::acme::Acme;

/// How the authority knows the server.
#[derive(Serialize, Deserialize)]
struct KnownAs<C> {
    /// The authority.
    directory: String,
    contact: String,
    credentials: C,
}

/// Gets a certificate: its key, and behind it those that vouch for it, as PEM.
///
/// # Errors
/// Why the authority gave none, in words.
pub(super) async fn obtain(
    asked: &Acme,
    kept: &Kept,
    challenges: &Challenges,
) -> Result<Zeroizing<String>, String> {
    let account = account(asked, kept).await?;
    let names: Vec<_> = asked.names.iter().cloned().map(Identifier::Dns).collect();
    let mut order = account.new_order(&NewOrder::new(&names)).await.map_err(words)?;
    answer(&mut order, challenges).await?;
    match order.poll_ready(&RetryPolicy::default()).await.map_err(words)? {
        OrderStatus::Ready => {}
        _ => return Err("it says that a name does not lead here".to_owned()),
    }
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(words)?;
    let mut params = CertificateParams::new(asked.names.clone()).map_err(words)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(words)?;
    order.finalize_csr(request.der()).await.map_err(words)?;
    let chain = order.poll_certificate(&RetryPolicy::default()).await.map_err(words)?;
    Ok(Zeroizing::new(format!("{}{chain}", *Zeroizing::new(key.serialize_pem()))))
}

/// The account that the server has there, or a new one.
async fn account(asked: &Acme, kept: &Kept) -> Result<Account, String> {
    let builder = || Account::builder_with_http(Box::new(Client::new()));
    let known = kept.account().and_then(|json| serde_json::from_slice::<KnownAs<_>>(&json).ok());
    let is_same =
        |known: &KnownAs<_>| known.directory == asked.directory && known.contact == asked.contact;
    if let Some(known) = known.filter(is_same) {
        return builder().from_credentials(known.credentials).await.map_err(words);
    }
    let new = NewAccount {
        contact: &[&asked.contact],
        // Whoever names an authority on the command line agrees with what it asks for.
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let (account, credentials) =
        builder().create(&new, asked.directory.clone(), None).await.map_err(words)?;
    let (directory, contact) = (asked.directory.clone(), asked.contact.clone());
    let known = KnownAs { directory, contact, credentials };
    let json = Zeroizing::new(serde_json::to_vec(&known).map_err(words)?);
    kept.put_account(&json).map_err(words)?;
    Ok(account)
}

/// Has the authority look whether each name leads here.
async fn answer(order: &mut Order, challenges: &Challenges) -> Result<(), String> {
    let mut all = order.authorizations();
    while let Some(one) = all.next().await {
        let mut one = one.map_err(words)?;
        match one.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            _ => return Err("it did not begin to look whether a name leads here".to_owned()),
        }
        let mut challenge = one
            .challenge(ChallengeType::TlsAlpn01)
            .ok_or("it does not look by TLS-ALPN-01 whether a name leads here")?;
        let name = challenge.identifier().to_string();
        challenges.answer(&name, challenge.key_authorization().digest().as_ref())?;
        challenge.set_ready().await.map_err(words)?;
    }
    Ok(())
}

fn words(error: impl std::error::Error) -> String {
    // What another computer says is shown to people.
    error.to_string().chars().filter(|letter| !letter.is_control()).take(500).collect()
}
