//! The payload codec. The only file that names bincode. FORMAT.md, "Payload codec".

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

const LIMIT: usize = crate::format::RECORD_BYTES_MAX;
const CONFIGURATION: Configuration<LittleEndian, Varint, Limit<LIMIT>> =
    bincode::config::standard().with_limit::<LIMIT>();

/// Why a value could not be encoded or decoded. Never carries the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Its bytes would not fit a record.
    #[error("the payload is larger than a record may be")]
    TooLarge,
    /// The value is of a type the codec has no form for.
    #[error("the payload has no encoded form")]
    NotEncodable,
    /// The bytes are not a value of the wanted type.
    #[error("the payload is not of the form its kind has")]
    Malformed,
    /// Bytes are left after the value.
    #[error("the payload has bytes after its end")]
    Trailing,
}

/// Encodes a value.
///
/// # Errors
/// [`PayloadError::TooLarge`] or [`PayloadError::NotEncodable`].
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, PayloadError> {
    let bytes =
        bincode::serde::encode_to_vec(value, CONFIGURATION).map_err(|_| PayloadError::NotEncodable)?;
    if bytes.len() > crate::format::PAYLOAD_BYTES_MAX { Err(PayloadError::TooLarge) } else { Ok(bytes) }
}

/// Decodes a value from exactly these bytes. Allocates no more than the limit of a record.
///
/// # Errors
/// [`PayloadError::Malformed`] or [`PayloadError::Trailing`].
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PayloadError> {
    let (value, used) =
        bincode::serde::decode_from_slice(bytes, CONFIGURATION).map_err(|_| PayloadError::Malformed)?;
    if used == bytes.len() { Ok(value) } else { Err(PayloadError::Trailing) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Sample {
        Unit,
        Fields {
            flag: bool,
            id: [u8; 3],
            list: Vec<u16>,
            text: String,
            map: BTreeMap<String, u64>,
            none: Option<u8>,
        },
    }

    #[test]
    fn values_have_the_bytes_that_format_md_gives_them() {
        let map = BTreeMap::from([("b".to_owned(), 65_536), ("a".to_owned(), u64::MAX)]);
        let text = "é".to_owned();
        let value = Sample::Fields {
            flag: true,
            id: [250, 251, 255],
            list: vec![250, 251, 300],
            text,
            map,
            none: None,
        };
        let bytes = encode(&value).expect("bytes");
        let mut want = vec![1, 1, 250, 251, 255, 3, 250, 251, 251, 0, 251, 44, 1, 2, 0xc3, 0xa9, 2];
        want.extend_from_slice(&[
            1, b'a', 253, 255, 255, 255, 255, 255, 255, 255, 255, 1, b'b', 252, 0, 0, 1, 0, 0,
        ]);
        assert_eq!(bytes, want);
        assert_eq!(decode::<Sample>(&bytes), Ok(value));
        assert_eq!(encode(&Sample::Unit), Ok(vec![0]));
    }

    #[test]
    fn bytes_that_are_not_exactly_a_value_are_refused_without_large_allocations() {
        assert_eq!(decode::<u8>(&[]), Err(PayloadError::Malformed));
        assert_eq!(decode::<u8>(&[1, 2]), Err(PayloadError::Trailing));
        assert_eq!(decode::<bool>(&[2]), Err(PayloadError::Malformed));
        let claims_2_to_63 = [253, 0, 0, 0, 0, 0, 0, 0, 128];
        assert_eq!(decode::<Vec<u64>>(&claims_2_to_63), Err(PayloadError::Malformed));
        assert_eq!(decode::<String>(&claims_2_to_63), Err(PayloadError::Malformed));
        assert_eq!(encode(&vec![0_u8; LIMIT]), Err(PayloadError::TooLarge));
    }
}
