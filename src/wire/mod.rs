//! Bytes and headers.

/// What a work request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Send,
    Write,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("bad ICRC")]
    BadIcrc,
}
impl WireError {
    pub const fn is_bad_icrc(self) -> bool {
        true
    }
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);
pub const DATA_OVERHEAD: crate::base::Octets = crate::base::Octets::new(58);
pub const ACK_WIRE_LEN: crate::base::Octets = crate::base::Octets::new(126);
pub const CNP_WIRE_LEN: crate::base::Octets = crate::base::Octets::new(122);
pub const PFC_WIRE_LEN: crate::base::Octets = crate::base::Octets::new(84);
pub const FRAMING: crate::base::Octets = crate::base::Octets::new(18);
