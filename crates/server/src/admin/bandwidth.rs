//! Limits by hours of the week: what an administrator says of them.

use super::administration::Administration;
use super::entries::{BandwidthEntry, BandwidthRules};
use crate::ServerError;
use crate::accounts::BandwidthRule;

impl Administration<'_> {
    pub(super) fn bandwidth(&self) -> Result<BandwidthRules, ServerError> {
        let rules = self.accounts.bandwidth_rules()?;
        let rules = rules.into_iter().map(|(number, rule)| BandwidthEntry { number, rule });
        Ok(BandwidthRules { rules: rules.collect() })
    }

    pub(super) fn add_bandwidth(
        &self,
        rule: &BandwidthRule,
    ) -> Result<BandwidthRules, ServerError> {
        let number = self.accounts.add_bandwidth_rule(rule.clone())?;
        self.log(&format!("machines keep to {rule} from now on"));
        Ok(BandwidthRules { rules: vec![BandwidthEntry { number, rule: rule.clone() }] })
    }

    pub(super) fn remove_bandwidth(&self, number: u64) -> Result<BandwidthRules, ServerError> {
        let rule = self.accounts.remove_bandwidth_rule(number)?;
        self.log(&format!("machines keep to {rule} no longer"));
        Ok(BandwidthRules { rules: vec![BandwidthEntry { number, rule }] })
    }
}
