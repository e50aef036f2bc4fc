//! PFC: pausing classes of the link's other end.

use bytes::Bytes;
use etherparse::{EtherType, Ethernet2Header};

use super::ethernet::MAC_CONTROL;
use super::{MacAddr, WireError, size};
use crate::base::Class;

/// A priority pause.
///
/// ```text
/// 01:80:c2:00:00:01 | source | 0x8808 | 0x0101 | reserved | enabled | 8 x quanta | padding to 60
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PfcFrame {
    pub dst: MacAddr,
    pub src: MacAddr,
    /// The upper octet of the class-enable vector. Sent as 0; a NIC may call the frame malformed otherwise.
    pub reserved: u8,
    /// Bit c speaks for class c.
    pub enabled: u8,
    /// By class; meaningless where `enabled` is clear.
    ///
    /// * Units: 512 bit times of the port. 0 resumes.
    pub quanta: [u16; Class::COUNT],
    /// What follows to the end of the frame: zeros, if it is ours.
    pub padding: Bytes,
}

impl PfcFrame {
    /// Octets that say something, without padding.
    const CONTENT: usize = Ethernet2Header::LEN + 2 + 2 + 2 * Class::COUNT;
    /// The smallest Ethernet frame, without FCS.
    const LEN: usize = 60;
    const GLOBAL_PAUSE: u16 = 0x0001;
    const PRIORITY_PAUSE: u16 = 0x0101;

    /// Pauses one class for `quanta`, or resumes it if they are 0.
    pub const fn pause(src: MacAddr, class: Class, quanta: u16) -> Self {
        let mut all = [0; Class::COUNT];
        all[class.index()] = quanta;
        Self {
            dst: MacAddr::MAC_CONTROL,
            src,
            reserved: 0,
            enabled: 1 << class.get(),
            quanta: all,
            padding: Bytes::from_static(&[0; Self::LEN - Self::CONTENT]),
        }
    }

    pub const fn resume(src: MacAddr, class: Class) -> Self {
        Self::pause(src, class, 0)
    }

    /// The frame with zeros up to the model's size (model.md W3); what padding it had is replaced.
    pub fn padded_to_model(self) -> Self {
        Self { padding: size::filler(Self::CONTENT, self.wire_len()), ..self }
    }

    /// The classes the frame speaks for, lowest first, with their quanta.
    pub fn classes(&self) -> impl Iterator<Item = (Class, u16)> {
        Class::all().filter(|class| self.enabled >> class.get() & 1 != 0).map(|c| (c, self.quanta[c.index()]))
    }

    /// * Errors: `Short`, `UnknownEtherType`, `GlobalPause`, `UnknownMacControl`, `PfcDestination`.
    pub fn parse(frame: &Bytes) -> Result<Self, WireError> {
        let short = |need| WireError::Short { need, have: frame.len() };
        let (eth, control) = Ethernet2Header::from_slice(frame).map_err(|_| short(Ethernet2Header::LEN))?;
        if eth.ether_type.0 != MAC_CONTROL {
            return Err(WireError::UnknownEtherType(eth.ether_type.0));
        }
        let (opcode, behind) = control.split_first_chunk().ok_or(short(Ethernet2Header::LEN + 2))?;
        match u16::from_be_bytes(*opcode) {
            Self::PRIORITY_PAUSE => {}
            Self::GLOBAL_PAUSE => return Err(WireError::GlobalPause),
            other => return Err(WireError::UnknownMacControl(other)),
        }
        let dst = MacAddr(eth.destination);
        if dst != MacAddr::MAC_CONTROL {
            return Err(WireError::PfcDestination(dst));
        }
        let (vector, behind) = behind.split_first_chunk::<2>().ok_or(short(Self::CONTENT))?;
        let (times, _) = behind.split_first_chunk::<{ 2 * Class::COUNT }>().ok_or(short(Self::CONTENT))?;
        let [reserved, enabled] = *vector;
        let quanta = std::array::from_fn(|i| u16::from_be_bytes([times[2 * i], times[2 * i + 1]]));
        let padding = frame.slice(Self::CONTENT..);
        Ok(Self { dst, src: MacAddr(eth.source), reserved, enabled, quanta, padding })
    }

    /// A frame of 60 octets, or as many as its padding makes.
    pub fn emit(&self) -> Bytes {
        let eth = Ethernet2Header { source: self.src.0, destination: self.dst.0, ether_type: EtherType(MAC_CONTROL) };
        let mut frame = Vec::with_capacity(Self::CONTENT + self.padding.len());
        frame.extend_from_slice(&eth.to_bytes());
        frame.extend_from_slice(&Self::PRIORITY_PAUSE.to_be_bytes());
        frame.extend_from_slice(&[self.reserved, self.enabled]);
        for quanta in self.quanta {
            frame.extend_from_slice(&quanta.to_be_bytes());
        }
        frame.extend_from_slice(&self.padding);
        frame.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn xoff() -> Vec<u8> {
        PfcFrame::pause(SRC, Class::new(3).unwrap(), 65_535).emit().to_vec()
    }

    #[test]
    fn a_pause_is_sixty_octets_and_names_one_class() {
        let frame = xoff();
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[12..18], [0x88, 0x08, 0x01, 0x01, 0x00, 0x08]);
        assert_eq!(frame[18..34], [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(frame[34..].iter().all(|&octet| octet == 0));
        let parsed = PfcFrame::parse(&frame.into()).unwrap();
        assert_eq!(parsed.classes().collect::<Vec<_>>(), [(Class::new(3).unwrap(), 65_535)]);
    }

    #[test]
    fn a_pause_of_the_whole_link_is_no_priority_pause() {
        let mut frame = xoff();
        frame[14..16].copy_from_slice(&[0x00, 0x01]);
        assert_eq!(PfcFrame::parse(&frame.clone().into()), Err(WireError::GlobalPause));
        frame[14..16].copy_from_slice(&[0x01, 0x02]);
        assert_eq!(PfcFrame::parse(&frame.into()), Err(WireError::UnknownMacControl(0x0102)));
    }

    #[test]
    fn a_pause_for_another_station_is_refused() {
        let mut frame = xoff();
        frame[5] = 2;
        let dst = MacAddr([0x01, 0x80, 0xc2, 0, 0, 2]);
        assert_eq!(PfcFrame::parse(&frame.into()), Err(WireError::PfcDestination(dst)));
    }

    #[test]
    fn reserved_bits_and_padding_are_kept() {
        let mut frame = xoff();
        frame[16] = 0x01;
        frame[59] = 0x5a;
        let frame = Bytes::from(frame);
        let parsed = PfcFrame::parse(&frame).unwrap();
        assert_eq!(parsed.reserved, 1);
        assert_eq!(parsed.emit(), frame);
    }

    #[test]
    fn a_pause_cut_short_is_refused_and_one_without_padding_is_not() {
        let frame = Bytes::from(xoff());
        for len in 0..34 {
            assert!(matches!(PfcFrame::parse(&frame.slice(..len)), Err(WireError::Short { .. })), "{len}");
        }
        assert!(PfcFrame::parse(&frame.slice(..34)).is_ok());
    }
}
