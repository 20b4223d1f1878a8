//! Layers: what a stage leans on, in the words that `limited_by` uses.

use serde::{Deserialize, Serialize};

/// What a stage leans on, and therefore what can hold a run back.
///
/// Serialised as the words of the command line's `limited_by` (`source-metadata`, ...).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub enum Layer {
    /// Listing directories and reading metadata of the source.
    SourceMetadata,
    /// Reading file content from the source.
    SourceRead,
    /// The client's processor: chunking, hashing, compressing, sealing.
    ClientCpu,
    /// The client's bound on bytes in flight.
    ClientMemory,
    /// The path between client and server.
    Network,
    /// The server's processor.
    ServerCpu,
    /// The server's disk: writing and making durable.
    ServerDisk,
    /// The server is at work for somebody else, or holds requests back.
    ServerBusy,
    /// Creating and writing files at the target of a restore.
    TargetWrite,
    /// The run was too short to say, or only start-up.
    Nothing,
    /// Two layers are too close, or none was busy enough.
    Unsure,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::SourceMetadata,
        Self::SourceRead,
        Self::ClientCpu,
        Self::ClientMemory,
        Self::Network,
        Self::ServerCpu,
        Self::ServerDisk,
        Self::ServerBusy,
        Self::TargetWrite,
        Self::Nothing,
        Self::Unsure,
    ];

    /// The layer of that word; `None` for one that a later version may have.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.word() == word)
    }

    /// The word that the command line uses.
    pub fn word(self) -> &'static str {
        match self {
            Self::SourceMetadata => "source-metadata",
            Self::SourceRead => "source-read",
            Self::ClientCpu => "client-cpu",
            Self::ClientMemory => "client-memory",
            Self::Network => "network",
            Self::ServerCpu => "server-cpu",
            Self::ServerDisk => "server-disk",
            Self::ServerBusy => "server-busy",
            Self::TargetWrite => "target-write",
            Self::Nothing => "nothing",
            Self::Unsure => "unsure",
        }
    }

    /// The layer within a sentence, such as `the network`.
    pub fn named(self) -> String {
        let mut words = self.subject().to_owned();
        if let Some(first) = words.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        words
    }

    /// The layer as the subject of a sentence.
    pub(crate) fn subject(self) -> &'static str {
        match self {
            Self::SourceMetadata => "Listing the source and reading its metadata",
            Self::SourceRead => "Reading the source",
            Self::ClientCpu => "This computer's processor",
            Self::ClientMemory => "This computer's memory",
            Self::Network => "The network",
            Self::ServerCpu => "The server's processor",
            Self::ServerDisk => "The server's disk",
            Self::ServerBusy => "A server busy with other work",
            Self::TargetWrite => "Writing to the target",
            Self::Nothing => "Nothing",
            Self::Unsure => "No single layer",
        }
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_is_found_by_its_word_which_is_that_of_its_json() {
        for layer in Layer::ALL {
            assert_eq!(Layer::of_word(layer.word()), Some(layer));
            assert_eq!(serde_json::to_value(layer).unwrap(), layer.word());
        }
        assert_eq!(Layer::of_word("of-tomorrow"), None);
    }
}
