//! Tokens of tags in rows and commands: as hexadecimal digits.

use holdall_format::TagToken;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(tokens: &[TagToken], to: S) -> Result<S::Ok, S::Error> {
    tokens.iter().map(ToString::to_string).collect::<Vec<_>>().serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<TagToken>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

/// How a document describes them.
#[cfg(feature = "web")]
pub(super) fn schema() -> utoipa::openapi::schema::Array {
    use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
    let token = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9a-fA-F]{32}$"));
    ArrayBuilder::new().items(token).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Keeping;

    #[test]
    fn tags_read_back_none_is_usual_and_what_is_no_token_is_refused() {
        let tags = vec![TagToken::from_bytes([0xab; 16]), TagToken::from_bytes([1; 16])];
        let text = serde_json::to_string(&Keeping { tags, ..Keeping::USUAL }).unwrap();
        let read: Keeping = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(text.contains(&"ab".repeat(16)), "{text}");
        assert!(serde_json::from_str::<Keeping>(&text.replace("abab", "work")).is_err());
        let mut row: serde_json::Value = serde_json::from_str(&text).unwrap();
        row.as_object_mut().unwrap().remove("tags");
        assert_eq!(serde_json::from_value::<Keeping>(row).unwrap(), Keeping::USUAL);
    }
}
