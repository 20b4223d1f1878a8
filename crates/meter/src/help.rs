//! What would help where a layer limits.

use crate::Layer;

/// What would help where requests wait for each other, each of them for a way to and fro.
pub(crate) const HELP_FAR_AWAY: &str = "What would help: a server that is nearer, or a way there with less delay, \
    such as a cable and not Wi-Fi, or none through a VPN; a faster wire would change little.";

/// What would help where other programs keep all cores busy.
pub(crate) const HELP_BESIDE_OTHERS: &str = "What would help: fewer programs beside it, or more cores here; run it again \
    when nothing else does.";

/// What would help where a quota keeps a process off the processor.
pub(crate) const HELP_QUOTA: &str = "What would help: a higher quota, such as `CPUQuota=` of the service or the \
    container's limit; a faster network or server would not help.";

impl Layer {
    /// What would help a run that this layer limits, in a sentence; `figure` is what the layer does now,
    /// where that was measured by itself. Nothing where nothing is known to limit.
    pub fn help(self, figure: Option<&str>) -> Option<String> {
        let now = figure.map_or_else(String::new, |figure| format!(" ({figure} now)"));
        let help = match self {
            Self::SourceMetadata => format!(
                "names that are found faster{now}: a source on an SSD, or run the backup on the computer \
                 that has the disk and not over a share."
            ),
            Self::SourceRead => format!(
                "a source that is read faster{now}, such as an SSD, or no other program that reads there \
                 meanwhile."
            ),
            Self::ClientCpu => format!(
                "more cores or a faster processor here{now}; a faster network or server would not help."
            ),
            Self::ClientMemory => "more memory here, or fewer programs beside the run.".to_owned(),
            Self::Network => format!(
                "a faster wire{now}: a cable and not Wi-Fi, a faster port; `holdall lab net` tells more."
            ),
            Self::ServerDisk => format!(
                "a faster disk for the repository{now}, such as an SSD; `holdall lab disk` on it tells \
                 more."
            ),
            Self::ServerCpu => {
                "a faster processor where the repository is, or fewer programs beside it."
                    .to_owned()
            }
            Self::ServerBusy => {
                "another time of the day, when the server has less to do.".to_owned()
            }
            Self::TargetWrite => format!(
                "a target that is written faster{now}, such as an SSD; `holdall lab files` on it tells \
                 more."
            ),
            Self::Nothing | Self::Unsure => return None,
        };
        Some(format!("What would help: {help}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_told_where_there_is_one() {
        let told = Layer::Network.help(Some("11.8 MB/s")).unwrap();
        assert!(
            told.starts_with("What would help: a faster wire (11.8 MB/s now): a cable"),
            "{told}"
        );
        assert!(!Layer::Network.help(None).unwrap().contains("now"));
        assert_eq!(Layer::Unsure.help(Some("1 MB/s")), None);
    }
}
