//! The invariant CRC: over everything from the IPv4 header to the pad that no switch may change.

use etherparse::Ethernet2Header;

use super::WireError;
use super::ip::Datagram;

/// IPv4 without options, UDP, BTH: the headers in which octets are masked.
pub(super) const MASKED_LEN: usize = 20 + 8 + 12;
pub(super) const ICRC_LEN: usize = 4;

/// What switches change, or may: TOS, TTL, IPv4 checksum, UDP checksum, FECN and BECN with the bits beside them.
const MASKED: [usize; 7] = [1, 8, 10, 11, 26, 27, 32];

/// `crc32` of eight octets 0xFF, which stand for InfiniBand's local route header.
const AFTER_ROUTE_HEADER: u32 = 0x2144_df1c;

/// The ICRC of a packet over IPv4, as its octets go on the wire: the CRC's least significant first.
///
/// * Shape: `headers` from the IPv4 header to the BTH as sent, `rest` from there to the last pad octet.
/// * Cost: no allocation; only the headers are copied.
/// * Source: RoCEv2 (InfiniBand Annex A17), "ICRC"; checked against a captured ConnectX-4 Lx and soft-RoCE.
pub fn icrc(headers: &[u8; MASKED_LEN], rest: &[u8]) -> [u8; ICRC_LEN] {
    let mut masked = *headers;
    for at in MASKED {
        masked[at] = 0xff;
    }
    let mut crc = crc32fast::Hasher::new_with_initial(AFTER_ROUTE_HEADER);
    crc.update(&masked);
    crc.update(rest);
    crc.finalize().to_le_bytes()
}

/// Checks the ICRC of a whole frame.
///
/// * Errors: `BadIcrc`; or why there is none to check, as [`super::Packet::parse`] says it.
pub fn verify_icrc(frame: &[u8]) -> Result<(), WireError> {
    let transport = Datagram::find(frame)?.transport()?;
    verify(&frame[Ethernet2Header::LEN..transport.end])
}

/// * Shape: `datagram` from the IPv4 header to the ICRC.
/// * Errors: `Short` if there is no room for BTH and ICRC, `BadIcrc`.
pub(super) fn verify(datagram: &[u8]) -> Result<(), WireError> {
    const OUTER: usize = 20 + 8;
    let short = WireError::Short { need: MASKED_LEN - OUTER + ICRC_LEN, have: datagram.len().saturating_sub(OUTER) };
    let (headers, behind) = datagram.split_first_chunk().ok_or(short)?;
    let (rest, found) = behind.split_last_chunk().ok_or(short)?;
    let computed = icrc(headers, rest);
    if *found == computed {
        return Ok(());
    }
    Err(WireError::BadIcrc { found: u32::from_be_bytes(*found), computed: u32::from_be_bytes(computed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published by the maintainers of scapy in `test/contrib/roce.uts`.
    const CONNECTX_4_CNP: [u8; 74] = *b"\xe4\x1d\x2d\xab\x2b\xc2\x7c\xfe\x90\x64\x3b\x32\x08\x00\x45\xc2\
        \x00\x3c\x71\x8c\x40\x00\x40\x11\x91\x61\x0a\x00\x11\x01\x0a\x00\
        \x12\x01\x00\x00\x12\xb7\x00\x28\x00\x00\x81\x00\xff\xff\x40\x00\
        \x01\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
        \x00\x00\x00\x00\x00\x00\x82\xfd\x00\x2a";

    #[test]
    fn the_initial_state_is_that_of_eight_octets_of_ones() {
        assert_eq!(crc32fast::hash(&[0xff; 8]), AFTER_ROUTE_HEADER);
    }

    #[test]
    fn a_captured_connectx_4_cnp_carries_the_crc_we_compute() {
        assert_eq!(verify_icrc(&CONNECTX_4_CNP), Ok(()));
        let headers = CONNECTX_4_CNP[14..54].try_into().unwrap();
        assert_eq!(icrc(headers, &CONNECTX_4_CNP[54..70]), [0x82, 0xfd, 0x00, 0x2a]);
    }

    #[test]
    fn only_masked_octets_may_change_on_the_way() {
        let masked = MASKED.map(|at| at + Ethernet2Header::LEN);
        // TOS and TTL sit under the IPv4 checksum, but that is not the ICRC's business. Lengths and ports are
        // structure: without them there is no ICRC to find.
        for at in Ethernet2Header::LEN..CONNECTX_4_CNP.len() {
            let mut frame = CONNECTX_4_CNP;
            frame[at] ^= 1;
            assert_eq!(verify_icrc(&frame).is_ok(), masked.contains(&at), "octet {at}");
        }
    }

    #[test]
    fn a_datagram_without_room_for_an_icrc_is_short() {
        assert_eq!(verify(&[0; 43]), Err(WireError::Short { need: 16, have: 15 }));
        assert_eq!(verify(&[]), Err(WireError::Short { need: 16, have: 0 }));
    }
}
